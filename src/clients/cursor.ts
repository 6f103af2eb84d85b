/**
 * Cursor: fields of its settings, in no file. Its own servers send the requests, so they must reach the gateway, and
 * for names that it knows it sends members of other languages to the chat route. Sources:
 * https://cursor.com/docs/settings/api-keys, https://www.truefoundry.com/docs/ai-gateway/cursor for what it sends.
 */
import type { Recipe } from './recipe.ts'

export const cursor: Recipe = {
  name: 'cursor',
  title: 'Cursor',
  speaks: 'chat',
  needsModel: true,
  setup({ gatewayUrl, models, token }) {
    return {
      environment: {},
      files: [],
      snippets: [],
      steps: [
        `Settings, Models, API Keys: put ${token} into "OpenAI API Key".`,
        `Turn on "Override OpenAI Base URL" and enter ${gatewayUrl}/v1.`,
        ...models.map((model) => `Add the model ${model} under Models, and choose it in a chat.`),
        "Cursor's servers send the requests: the gateway needs an https address that they reach. Loopback and private addresses do not work.",
        'Only chat and agent use this; Tab completion stays with Cursor. For names with gpt, claude or gemini Cursor sends other forms of requests: give the model another name if one is refused.',
      ],
    }
  },
}
