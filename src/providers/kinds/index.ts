/** Every provider kind. Adding one is its file and its line here. */

import type { ProviderKind } from '../provider.ts'
import { simulator } from '../simulator/simulator.ts'
import { anthropic } from './anthropic.ts'
import { azureOpenai } from './azure-openai.ts'
import { bedrock } from './bedrock.ts'
import { gemini } from './gemini.ts'
import { openai } from './openai.ts'

export const providerKinds: ReadonlyMap<string, ProviderKind> = new Map(
  [openai, anthropic, azureOpenai, gemini, bedrock, simulator].map((kind) => [kind.kind, kind]),
)
