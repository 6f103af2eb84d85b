/** The one version, shown by `version`, `/healthz`, `/v1/openapi.json` and bootstrap (contract section 1). */
export const version = '0.2.0'
