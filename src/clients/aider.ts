/**
 * aider: the address, the key and the models in `~/.aider.conf.yml`, or as variables. It reaches a gateway as an OpenAI
 * provider, which the prefix `openai/` before a model chooses. It has no helper for a secret. Sources:
 * https://aider.chat/docs/llms/openai-compat.html, https://aider.chat/docs/config/aider_conf.html, and a run of
 * `aider-chat` 0.86.2.
 */
import { quoted, type Recipe } from './recipe.ts'

export const aider: Recipe = {
  name: 'aider',
  title: 'aider',
  speaks: 'chat',
  needsModel: true,
  setup({ gatewayUrl, models, token, tokenFile }) {
    const lines = [
      `openai-api-base: ${gatewayUrl}/v1`,
      ...(tokenFile === null ? [] : [`openai-api-key: ${token}`]),
      `model: ${quoted(`openai/${models[0]}`)}`,
      `weak-model: ${quoted(`openai/${models.at(-1)}`)}`,
    ]
    return {
      environment: tokenFile === null ? { OPENAI_API_KEY: token } : {},
      files: [{ path: '.aider.conf.yml', text: `${lines.join('\n')}\n` }],
      snippets: [],
      steps: ['An .aider.conf.yml of a project goes before this file. Start aider.'],
    }
  },
}
