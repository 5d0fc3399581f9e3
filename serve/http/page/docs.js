// Swagger UI for the server's OpenAPI document; an entered key stays in memory.
globalThis.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  persistAuthorization: false,
  validatorUrl: null,
});
