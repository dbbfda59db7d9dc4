# The gate, and automatic repairs.

# Runs all checks for a change. Does not change the source.
verify:
    .ci/run

# Applies the automatic repairs of the tools.
fix:
    cargo clippy --all-targets --fix --allow-dirty --allow-staged
    cargo fmt
    # `.ci/python` installs ruff.
    target/lint/bin/ruff check --fix
    target/lint/bin/ruff format
