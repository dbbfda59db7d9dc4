"""Prints the documents of YAML files as JSON, one list for each file. Documents of Kubernetes (with a `kind`) are first
validated against the schemas of Kubernetes."""

import json
import sys
from pathlib import Path

import kubernetes_validate
import yaml

for path in sys.argv[1:]:
    documents = list(yaml.safe_load_all(Path(path).read_text()))
    for document in documents:
        if "kind" in document:
            try:
                kubernetes_validate.validate(document, "1.31", strict=True)
            except kubernetes_validate.ValidationError as error:
                sys.exit(f"{path}: {document['kind']}: {error}")
    print(json.dumps(documents))
