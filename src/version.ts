/** The one version, shown by `version`, `/healthz`, `/v1/openapi.json` and bootstrap (src/README.md). */
export const version = '0.2.0'
