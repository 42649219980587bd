"""The reference at /docs: Swagger UI over our own document. It shows what that says and tries it out; all of it comes from here."""

from importlib.resources import files

OWN, BUNDLED = files("handlers") / "pages" / "reference", files("flask_swagger_ui") / "dist"
FILES = {
    "/docs": (OWN / "index.html", "text/html"),
    "/docs/start.js": (OWN / "start.js", "text/javascript"),
    "/docs/swagger-ui-bundle.js": (BUNDLED / "swagger-ui-bundle.js", "text/javascript"),
    "/docs/swagger-ui.css": (BUNDLED / "swagger-ui.css", "text/css"),
    "/docs/icon.png": (BUNDLED / "favicon-32x32.png", "image/png"),
}
# Swagger UI writes styles and pictures of its own into the page, and no script.
HEADERS = {"Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; "
                                      "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
           "Referrer-Policy": "no-referrer"}
