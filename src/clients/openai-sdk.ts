/**
 * The OpenAI SDKs read the address and the key from variables. Sources: `OPENAI_BASE_URL` and `OPENAI_API_KEY` in the
 * READMEs of https://github.com/openai/openai-node and https://github.com/openai/openai-python.
 */
import { quoted, type Recipe } from './recipe.ts'

export const openaiSdk: Recipe = {
  name: 'openai-sdk',
  title: 'OpenAI SDK',
  speaks: 'chat',
  setup({ gatewayUrl, models, token }) {
    const model = quoted(models[0] ?? 'gpt-4o')
    return {
      environment: { OPENAI_BASE_URL: `${gatewayUrl}/v1`, OPENAI_API_KEY: token },
      files: [],
      snippets: [
        {
          language: 'TypeScript',
          text: `import OpenAI from 'openai'

const openai = new OpenAI()
const answer = await openai.chat.completions.create({
  model: ${model},
  messages: [{ role: 'user', content: 'Hello' }],
})
console.log(answer.choices[0]?.message.content)
`,
        },
        {
          language: 'Python',
          text: `from openai import OpenAI

client = OpenAI()
answer = client.chat.completions.create(
    model=${model},
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)
`,
        },
      ],
      steps: [],
    }
  },
}
