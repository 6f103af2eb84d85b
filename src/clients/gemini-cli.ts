/**
 * Gemini CLI: variables, which it also reads from `~/.gemini/.env`, and the choice of a key as the way to sign in.
 * Without that choice the address is ignored, or taken for another way to sign in. It has no helper for a secret.
 * Sources: `docs/reference/configuration.md` in `@google/gemini-cli` 0.61.0,
 * https://github.com/google-gemini/gemini-cli/pull/25357 for the address,
 * https://github.com/google-gemini/gemini-cli/issues/27550 for the choice, and a run of that version.
 */
import { environmentFile, json, type Recipe } from './recipe.ts'

const movedBy = { variable: 'GEMINI_CLI_HOME', from: '' }

export const geminiCli: Recipe = {
  name: 'gemini-cli',
  title: 'Gemini CLI',
  speaks: 'gemini',
  setup({ gatewayUrl, models, token, tokenFile }) {
    const environment = {
      GEMINI_API_KEY: token,
      GOOGLE_GEMINI_BASE_URL: gatewayUrl,
      ...(models[0] === undefined ? {} : { GEMINI_MODEL: models[0] }),
    }
    const settings = { security: { auth: { selectedType: 'gemini-api-key' } } }
    const choice = { path: '.gemini/settings.json', movedBy, text: json(settings) }
    const inFile = { path: '.gemini/.env', movedBy, text: environmentFile(environment) }
    return {
      environment: tokenFile === null ? environment : {},
      files: tokenFile === null ? [choice] : [inFile, choice],
      snippets: [],
      steps: [
        'Gemini CLI wants https for a gateway that is not on this host.',
        'A .env file of a project or a directory above it takes the place of ~/.gemini/.env. Start gemini; /about names the way it signs in.',
      ],
    }
  },
}
