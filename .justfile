# The gate, and what repairs what can be repaired.

# Everything that must hold before a change is taken; writes nothing into the source.
verify:
    .ci/run

# What tools can repair by themselves.
fix:
    cargo clippy --all-targets --fix --allow-dirty --allow-staged
    cargo fmt
    # `.ci/python` installs it
    target/lint/bin/ruff check --fix
    target/lint/bin/ruff format
