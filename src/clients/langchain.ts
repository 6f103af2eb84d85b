/**
 * LangChain's chat model for OpenAI reads the address and the key from variables. Source: the reference of
 * `ChatOpenAI`, https://reference.langchain.com/python/integrations/langchain_openai/ChatOpenAI/ (`OPENAI_API_BASE`,
 * `OPENAI_API_KEY`).
 */
import { quoted, type Recipe } from './recipe.ts'

export const langchain: Recipe = {
  name: 'langchain',
  title: 'LangChain',
  speaks: 'chat',
  setup({ gatewayUrl, models, token }) {
    return {
      environment: { OPENAI_API_BASE: `${gatewayUrl}/v1`, OPENAI_API_KEY: token },
      files: [],
      snippets: [
        {
          language: 'Python',
          text: `from langchain_openai import ChatOpenAI

llm = ChatOpenAI(model=${quoted(models[0] ?? 'gpt-4o')})
print(llm.invoke("Hello").content)
`,
        },
      ],
      steps: [],
    }
  },
}
