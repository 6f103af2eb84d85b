/**
 * The services that need no more than a key, one row each. A row gives the kind of the provider, and with it the
 * address, the variable of the key, the families, the name in the price table and what the service does otherwise than
 * OpenAI. `gatehouse provider create --preset NAME`, the variables of a start and the prefix of a model's name
 * (`model-prefix.ts`) follow from the table. To add a service: its row here, and in the handbook's table.
 *
 * A service lists the families that it speaks well itself; the gateway translates the others into chat. So Codex, which
 * speaks responses, reaches each of them.
 */
import type { Family } from '../../languages/families.ts'
import { nearest } from '../../lib/text/nearest.ts'
import { anthropic } from '../kinds/anthropic.ts'
import { azureOpenai } from '../kinds/azure-openai.ts'
import { bedrock } from '../kinds/bedrock.ts'
import { gemini } from '../kinds/gemini.ts'
import { openai } from '../kinds/openai.ts'
import { vertex } from '../kinds/vertex.ts'
import type { ProviderKind } from '../provider.ts'
import { type CompatibleService, compatibleKind } from './compatible.ts'

export interface Preset {
  /** What `--preset` says, and the name of its provider where no other is given. */
  name: string
  /** As people call the service. */
  title: string
  kind: ProviderKind
  /** A cheap model for `provider test`; absent: one of those that the provider lists. */
  testModel?: string
}

const preset = (title: string, kind: ProviderKind, more: Partial<Preset> = {}): Preset => ({
  name: kind.kind,
  title,
  kind,
  ...more,
})

const service = (title: string, row: CompatibleService, more: Partial<Preset> = {}): Preset =>
  preset(title, compatibleKind(row), more)

const text = ['chat', 'completions', 'embeddings'] as const satisfies readonly Family[]

export const presets: readonly Preset[] = [
  preset('OpenAI', openai),
  preset('Anthropic', anthropic),
  preset('Google Gemini', gemini),
  preset('Google Vertex AI', vertex, { testModel: 'gemini-2.5-flash-lite' }),
  preset('AWS Bedrock', bedrock),
  preset('Azure OpenAI', azureOpenai, { name: 'azure' }),
  service('Groq', {
    name: 'groq',
    baseUrl: 'https://api.groq.com/openai/v1',
    apiKey: 'GROQ_API_KEY',
    families: ['chat', 'transcriptions', 'translations', 'speech'],
    priceName: 'groq',
  }),
  service('Mistral', {
    name: 'mistral',
    baseUrl: 'https://api.mistral.ai/v1',
    apiKey: 'MISTRAL_API_KEY',
    families: ['chat', 'embeddings', 'moderations', 'transcriptions'],
    priceName: 'mistral',
    telemetryName: 'mistral_ai',
    limitsByMaxTokens: true,
  }),
  service('DeepSeek', {
    name: 'deepseek',
    baseUrl: 'https://api.deepseek.com/v1',
    apiKey: 'DEEPSEEK_API_KEY',
    families: ['chat'],
    priceName: 'deepseek',
    limitsByMaxTokens: true,
  }),
  service('xAI', {
    name: 'xai',
    baseUrl: 'https://api.x.ai/v1',
    apiKey: 'XAI_API_KEY',
    families: ['chat', 'responses', 'images'],
    priceName: 'x-ai',
    telemetryName: 'x_ai',
    storesResponses: true,
  }),
  service('Together AI', {
    name: 'together',
    baseUrl: 'https://api.together.xyz/v1',
    apiKey: 'TOGETHER_API_KEY',
    families: [...text, 'images', 'speech', 'transcriptions', 'rerank'],
    priceName: 'together',
    limitsByMaxTokens: true,
  }),
  service('Fireworks AI', {
    name: 'fireworks',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    apiKey: 'FIREWORKS_API_KEY',
    families: [...text, 'rerank'],
    priceName: 'fireworks',
    limitsByMaxTokens: true,
  }),
  service('OpenRouter', {
    name: 'openrouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    apiKey: 'OPENROUTER_API_KEY',
    families: text,
    priceName: 'openrouter',
  }),
  service(
    'Perplexity',
    {
      name: 'perplexity',
      baseUrl: 'https://api.perplexity.ai',
      apiKey: 'PERPLEXITY_API_KEY',
      families: ['chat'],
      priceName: 'perplexity',
      limitsByMaxTokens: true,
      modelsUrl: null,
    },
    { testModel: 'sonar' },
  ),
  service('Cohere', {
    name: 'cohere',
    baseUrl: 'https://api.cohere.ai/compatibility/v1',
    apiKey: 'COHERE_API_KEY',
    families: ['chat', 'embeddings'],
    priceName: 'cohere',
    limitsByMaxTokens: true,
    modelsUrl: 'https://api.cohere.com/v1/models?page_size=1000',
  }),
  service('NVIDIA', {
    name: 'nvidia',
    baseUrl: 'https://integrate.api.nvidia.com/v1',
    apiKey: 'NVIDIA_API_KEY',
    families: text,
    priceName: null,
    limitsByMaxTokens: true,
  }),
  service('Cerebras', {
    name: 'cerebras',
    baseUrl: 'https://api.cerebras.ai/v1',
    apiKey: 'CEREBRAS_API_KEY',
    families: ['chat', 'completions'],
    priceName: 'cerebras',
  }),
  service('SambaNova', {
    name: 'sambanova',
    baseUrl: 'https://api.sambanova.ai/v1',
    apiKey: 'SAMBANOVA_API_KEY',
    families: ['chat', 'embeddings', 'transcriptions'],
    priceName: null,
    limitsByMaxTokens: true,
  }),
  service('Hugging Face router', {
    name: 'huggingface',
    baseUrl: 'https://router.huggingface.co/v1',
    apiKey: 'HUGGINGFACE_API_KEY',
    families: ['chat'],
    priceName: null,
    limitsByMaxTokens: true,
  }),
  service('GitHub Models', {
    name: 'github',
    baseUrl: 'https://models.github.ai/inference',
    apiKey: 'GITHUB_API_KEY',
    families: ['chat', 'embeddings'],
    priceName: null,
    modelsUrl: 'https://models.github.ai/catalog/models',
  }),
  service('Ollama', {
    name: 'ollama',
    baseUrl: 'http://127.0.0.1:11434/v1',
    apiKey: 'OLLAMA_API_KEY',
    families: text,
    priceName: null,
    limitsByMaxTokens: true,
  }),
  service('vLLM', {
    name: 'vllm',
    baseUrl: 'http://127.0.0.1:8000/v1',
    apiKey: 'VLLM_API_KEY',
    families: [...text, 'rerank', 'transcriptions', 'translations'],
    priceName: null,
  }),
  service('LM Studio', {
    name: 'lmstudio',
    baseUrl: 'http://127.0.0.1:1234/v1',
    apiKey: 'LMSTUDIO_API_KEY',
    families: text,
    priceName: null,
    limitsByMaxTokens: true,
  }),
  service('llama.cpp', {
    name: 'llamacpp',
    baseUrl: 'http://127.0.0.1:8080/v1',
    apiKey: 'LLAMACPP_API_KEY',
    families: [...text, 'rerank'],
    priceName: null,
    limitsByMaxTokens: true,
  }),
]

const byName: ReadonlyMap<string, Preset> = new Map(presets.map((each) => [each.name, each]))

export const presetNamed = (name: string): Preset | undefined => byName.get(name)

/** Why there is no such preset, with the nearest one. */
export function unknownPreset(name: string): string {
  const names = presets.map((each) => each.name)
  const meant = nearest(name, names)
  const hint = meant === null ? '' : ` Did you mean ${meant}?`
  return `No preset has this name.${hint} The presets are ${names.join(', ')}. For another service write kind openai and its base_url`
}
