/**
 * opencode: a provider of its own in the user's `opencode.json`, with every model by name. The secret is a reference,
 * `{env:NAME}` or `{file:PATH}`. Sources: https://opencode.ai/docs/providers (custom provider),
 * https://opencode.ai/docs/config (variables), and a run of `opencode-ai` 1.18.33.
 */
import { exportedToken, json, type Recipe, tokenVariable } from './recipe.ts'

export const opencode: Recipe = {
  name: 'opencode',
  title: 'opencode',
  speaks: 'chat',
  needsModel: true,
  setup(connection) {
    const { gatewayUrl, models, tokenFile } = connection
    const config = {
      $schema: 'https://opencode.ai/config.json',
      model: `gatehouse/${models[0]}`,
      small_model: `gatehouse/${models.at(-1)}`,
      provider: {
        gatehouse: {
          npm: '@ai-sdk/openai-compatible',
          name: 'Gatehouse',
          options: {
            baseURL: `${gatewayUrl}/v1`,
            apiKey: tokenFile === null ? `{env:${tokenVariable}}` : `{file:${tokenFile}}`,
          },
          models: Object.fromEntries(models.map((model) => [model, { name: model }])),
        },
      },
    }
    return {
      environment: exportedToken(connection),
      files: [
        {
          path: '.config/opencode/opencode.json',
          movedBy: { variable: 'XDG_CONFIG_HOME', from: '.config' },
          alternatives: ['opencode.jsonc'],
          text: json(config),
          keeps: ['$schema'],
          removes: [['provider', 'gatehouse']],
        },
      ],
      snippets: [],
      steps: ['An opencode.json of a project goes before this file. Start opencode; /models lists the models.'],
    }
  },
}
