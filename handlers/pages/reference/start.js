// The document names the host of no installation: what is tried here goes to the one that serves this page.
fetch("/v1/openapi.json").then(answer => answer.json()).then(spec => SwaggerUIBundle({
  spec: {...spec, servers: [{url: location.origin}]},
  dom_id: "#reference",
  deepLinking: true,
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
}));
