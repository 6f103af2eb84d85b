/**
 * Continue (editors, and `cn` in a terminal): one entry of `models` in `config.yaml` for each model. The secret is a
 * reference to `~/.continue/.env`. Sources: https://docs.continue.dev/reference (config.yaml), and the order in which
 * `@continuedev/cli` 1.5.47 looks for a secret: variables, `~/.continue/.env`, `.env` of the project; and a run of it.
 */
import { environmentFile, quoted, type Recipe, tokenVariable } from './recipe.ts'

const movedBy = { variable: 'CONTINUE_GLOBAL_DIR', from: '.continue' }

export const continueDev: Recipe = {
  name: 'continue',
  title: 'Continue',
  speaks: 'chat',
  needsModel: true,
  setup({ gatewayUrl, models, token }) {
    const entry = (model: string) => [
      `  - name: ${quoted(`Gatehouse ${model}`)}`,
      '    provider: openai',
      `    model: ${quoted(model)}`,
      `    apiBase: ${gatewayUrl}/v1`,
      `    apiKey: \${{ secrets.${tokenVariable} }}`,
    ]
    const lines = ['name: Gatehouse', 'version: 0.0.1', 'schema: v1', 'models:', ...models.flatMap(entry)]
    return {
      environment: {},
      files: [
        { path: '.continue/.env', movedBy, text: environmentFile({ [tokenVariable]: token }) },
        {
          path: '.continue/config.yaml',
          movedBy,
          text: `${lines.join('\n')}\n`,
          keeps: ['name', 'version', 'schema'],
        },
      ],
      snippets: [],
      steps: [
        'Choose the local configuration and a Gatehouse model in Continue, or start cn --config ~/.continue/config.yaml.',
      ],
    }
  },
}
