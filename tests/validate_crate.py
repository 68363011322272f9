"""Print the requirements that an RO-Crate fails in roc-validator: `python validate_crate.py FOLDER PROFILE`.

Runs in the environment of requirements-crate.lock, offline: a short context replaces that of RO-Crate, and the
requirement that the context can be fetched is ignored.
"""

import io
import json
import sys
import urllib.request
import warnings
from email import message_from_string
from urllib.response import addinfourl

CONTEXT = {
    # All other terms are from schema.org.
    "@vocab": "http://schema.org/",
    "File": "http://schema.org/MediaObject",
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "conformsTo": "http://purl.org/dc/terms/conformsTo",
}


class Offline(urllib.request.HTTPSHandler):
    def https_open(self, request):
        if not request.full_url.startswith("https://w3id.org/ro/crate/"):
            raise OSError(f"asked for {request.full_url}")
        headers = message_from_string("Content-Type: application/ld+json\n\n")
        answer = addinfourl(io.BytesIO(json.dumps({"@context": CONTEXT}).encode()), headers, request.full_url, 200)
        answer.msg = "OK"
        return answer


def main(folder: str, profile: str) -> None:
    warnings.simplefilter("ignore")
    urllib.request.install_opener(urllib.request.build_opener(Offline))
    from rocrate_validator import models, services

    required = models.Severity.REQUIRED
    settings = services.ValidationSettings(
        rocrate_uri=folder, profile_identifier=profile, requirement_severity=required
    )
    messages = [str(issue.message) for issue in services.validate(settings).get_issues()]
    print("\n".join(sorted(message for message in messages if "/ro/crate/1.1/context" not in message)))


if __name__ == "__main__":
    main(*sys.argv[1:])
