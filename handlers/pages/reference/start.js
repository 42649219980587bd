// The document names the host of no installation: what is tried here goes to the one that serves this page.
// No app is registered whose people come back to this page: a key is enough here.
const shown = ({oauth2, ...schemes}) => schemes;
fetch("/v1/openapi.json").then(answer => answer.json()).then(spec => SwaggerUIBundle({
  spec: {...spec, servers: [{url: location.origin}],
    components: {...spec.components, securitySchemes: shown(spec.components.securitySchemes)}},
  dom_id: "#reference",
  deepLinking: true,
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
}));
