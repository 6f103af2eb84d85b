/**
 * Cline: the settings of the provider "OpenAI Compatible". Its command line keeps them, the key included, in
 * `providers.json`, as `cline auth` of `cline` 3.0.65 writes it; a run of that version reads it. It reads a key from no
 * variable or helper. https://docs.cline.bot/provider-config/openai-compatible names the fields of the editor.
 */
import { json, type Recipe } from './recipe.ts'

export const cline: Recipe = {
  name: 'cline',
  title: 'Cline',
  speaks: 'chat',
  needsModel: true,
  setup({ gatewayUrl, models, token }) {
    const provider = 'openai-compatible'
    const settings = { provider, apiKey: token, model: models[0], baseUrl: `${gatewayUrl}/v1` }
    const text = json({
      version: 1,
      lastUsedProvider: provider,
      modes: {},
      providers: { [provider]: { settings, updatedAt: '2026-01-01T00:00:00.000Z', tokenSource: 'manual' } },
    })
    return {
      environment: {},
      files: [
        {
          path: '.cline/data/settings/providers.json',
          text,
          keeps: ['version', 'modes'],
          stamps: [
            ['providers', provider, 'updatedAt'],
            ['providers', provider, 'tokenSource'],
          ],
        },
      ],
      snippets: [],
      steps: [
        `In an editor: Cline's settings, API Provider "OpenAI Compatible", Base URL ${gatewayUrl}/v1, the token as API Key, Model ID ${models[0]}.`,
      ],
    }
  },
}
