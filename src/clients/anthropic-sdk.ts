/**
 * The Anthropic SDKs read the address and the key from variables. Sources: `ANTHROPIC_BASE_URL` and `ANTHROPIC_API_KEY`
 * in the READMEs of https://github.com/anthropics/anthropic-sdk-typescript and
 * https://github.com/anthropics/anthropic-sdk-python.
 */
import { quoted, type Recipe } from './recipe.ts'

export const anthropicSdk: Recipe = {
  name: 'anthropic-sdk',
  title: 'Anthropic SDK',
  speaks: 'messages',
  setup({ gatewayUrl, models, token }) {
    const model = quoted(models[0] ?? 'claude-sonnet-4-5')
    return {
      environment: { ANTHROPIC_BASE_URL: gatewayUrl, ANTHROPIC_API_KEY: token },
      files: [],
      snippets: [
        {
          language: 'TypeScript',
          text: `import Anthropic from '@anthropic-ai/sdk'

const anthropic = new Anthropic()
const answer = await anthropic.messages.create({
  model: ${model},
  max_tokens: 1024,
  messages: [{ role: 'user', content: 'Hello' }],
})
console.log(answer.content)
`,
        },
        {
          language: 'Python',
          text: `from anthropic import Anthropic

client = Anthropic()
answer = client.messages.create(
    model=${model},
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content)
`,
        },
      ],
      steps: [],
    }
  },
}
