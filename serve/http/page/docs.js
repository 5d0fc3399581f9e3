// Swagger UI over this server's own OpenAPI document; a key that is typed in stays in memory.
globalThis.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  persistAuthorization: false,
  validatorUrl: null,
});
