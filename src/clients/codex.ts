/**
 * Codex: a provider of its own in `config.toml`, with the responses language, the only one it still speaks. The secret
 * comes from a variable (`env_key`) or from a command (`auth.command`), which Codex runs again after a 401. Sources:
 * https://developers.openai.com/codex/config-reference, https://github.com/openai/codex/pull/16267 for `auth`, and a
 * run of `@openai/codex` 0.169.0.
 */
import { exportedToken, quoted, type Recipe, tokenVariable } from './recipe.ts'

export const codex: Recipe = {
  name: 'codex',
  title: 'Codex',
  speaks: 'responses',
  setup(connection) {
    const { gatewayUrl, models, tokenFile } = connection
    const lines = [
      ...(models[0] === undefined ? [] : [`model = ${quoted(models[0])}`]),
      'model_provider = "gatehouse"',
      '',
      '[model_providers.gatehouse]',
      'name = "Gatehouse"',
      `base_url = ${quoted(`${gatewayUrl}/v1`)}`,
      'wire_api = "responses"',
      ...(tokenFile === null
        ? [`env_key = "${tokenVariable}"`]
        : ['', '[model_providers.gatehouse.auth]', 'command = "cat"', `args = [${quoted(tokenFile)}]`]),
    ]
    return {
      environment: exportedToken(connection),
      files: [
        {
          path: '.codex/config.toml',
          movedBy: { variable: 'CODEX_HOME', from: '.codex' },
          text: `${lines.join('\n')}\n`,
          removes: [['model_providers', 'gatehouse']],
        },
      ],
      snippets: [],
      steps: ['Start codex; /status names the provider.'],
    }
  },
}
