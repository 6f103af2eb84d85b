/**
 * What each kind of provider takes as a request, as strictly as the provider itself: members that must be there, none
 * that it does not know, and names of tools by its rule. Written from the providers' references (OpenAI, Anthropic,
 * Gemini API, AWS Bedrock Converse) and from requests that agents send them.
 */
import { z } from 'zod'
import { callSignature, thought } from './task.ts'

export type Wire = 'chat' | 'responses' | 'messages' | 'gemini' | 'converse'

export const object = z.record(z.string(), z.unknown())
export const toolName = z.string().regex(/^[\w-]{1,64}$/)
export const callId = z.string().regex(/^[\w-]{1,64}$/)
export const words = z.string().min(1)
const cache = { cache_control: z.strictObject({ type: z.literal('ephemeral'), ttl: z.string().optional() }).optional() }
const textBlock = z.strictObject({ type: z.literal('text'), text: words, ...cache })
const messageBlock = z.discriminatedUnion('type', [
  textBlock,
  z.strictObject({ type: z.literal('tool_use'), id: callId, name: toolName, input: object, ...cache }),
  z.strictObject({
    type: z.literal('tool_result'),
    tool_use_id: callId,
    content: z.union([z.string(), z.array(textBlock)]),
    is_error: z.boolean().optional(),
    ...cache,
  }),
  z.strictObject({
    type: z.literal('thinking'),
    thinking: z.literal(thought.thinking),
    signature: z.literal(thought.signature),
  }),
])
export const messages = z.strictObject({
  model: words,
  max_tokens: z.int().positive(),
  stream: z.literal(true),
  system: z.union([words, z.array(textBlock).min(1)]).optional(),
  messages: z
    .array(
      z.strictObject({
        role: z.enum(['user', 'assistant', 'system']),
        content: z.union([words, z.array(messageBlock).min(1)]),
      }),
    )
    .min(1),
  tools: z
    .array(
      z.strictObject({
        name: toolName,
        description: z.string().optional(),
        input_schema: z.looseObject({ type: z.literal('object') }),
        strict: z.boolean().optional(),
        ...cache,
      }),
    )
    .optional(),
  tool_choice: z
    .strictObject({
      type: z.enum(['auto', 'any', 'none']),
      disable_parallel_tool_use: z.boolean().optional(),
    })
    .optional(),
  thinking: z
    .strictObject({
      type: z.enum(['adaptive', 'enabled', 'disabled']),
      budget_tokens: z.int().optional(),
      display: z.string().optional(),
    })
    .optional(),
  output_config: z.strictObject({ effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']) }).optional(),
  metadata: z.strictObject({ user_id: z.string().max(2048) }).optional(),
  context_management: object.optional(),
  temperature: z.number().min(0).max(1).optional(),
  top_p: z.number().optional(),
  top_k: z.int().optional(),
})

/** What Gemini takes from clients that cannot keep a signature. */
const unsigned = 'skip_thought_signature_validator'
const geminiPart = z.union([
  z.strictObject({ text: words, thought: z.boolean().optional(), thoughtSignature: z.string().optional() }),
  z.strictObject({
    functionCall: z.strictObject({ id: z.string().optional(), name: words, args: object.optional() }),
    thoughtSignature: z.enum([callSignature, unsigned]).optional(),
  }),
  z.strictObject({
    functionResponse: z.strictObject({ id: z.string().optional(), name: words, response: object }),
  }),
])
/** The first call of a turn must bring its signature back. */
const isSigned = (parts: readonly object[]): boolean =>
  parts.filter((part) => 'functionCall' in part).every((part, at) => at > 0 || 'thoughtSignature' in part)
export const gemini = z.strictObject({
  contents: z
    .array(
      z.strictObject({
        role: z.enum(['user', 'model']),
        parts: z.array(geminiPart).min(1).refine(isSigned, 'the first call is not signed'),
      }),
    )
    .min(1)
    .refine(([first]) => first?.role === 'user', 'begins with the user'),
  systemInstruction: z
    .strictObject({ role: z.string().optional(), parts: z.array(z.strictObject({ text: words })).min(1) })
    .optional(),
  tools: z
    .array(
      z.strictObject({
        functionDeclarations: z
          .array(
            z.strictObject({
              name: z.string().regex(/^[A-Za-z_][\w.:-]{0,63}$/),
              description: z.string().optional(),
              parametersJsonSchema: object.optional(),
            }),
          )
          .min(1),
      }),
    )
    .optional(),
  toolConfig: z
    .strictObject({ functionCallingConfig: z.strictObject({ mode: z.enum(['AUTO', 'ANY', 'NONE', 'VALIDATED']) }) })
    .optional(),
  generationConfig: z
    .strictObject({
      temperature: z.number().optional(),
      topP: z.number().optional(),
      topK: z.number().optional(),
      maxOutputTokens: z.int().positive().optional(),
      thinkingConfig: z
        .strictObject({
          includeThoughts: z.boolean().optional(),
          thinkingLevel: z.string().optional(),
          thinkingBudget: z.int().optional(),
        })
        .optional(),
    })
    .optional(),
})

const cachePoint = z.strictObject({
  cachePoint: z.strictObject({ type: z.literal('default'), ttl: z.string().optional() }),
})
const converseText = z.strictObject({ text: z.string().regex(/\S/) })
const converseBlock = z.union([
  converseText,
  cachePoint,
  z.strictObject({
    reasoningContent: z.strictObject({
      reasoningText: z.strictObject({ text: z.literal(thought.thinking), signature: z.literal(thought.signature) }),
    }),
  }),
  z.strictObject({ toolUse: z.strictObject({ toolUseId: callId, name: toolName, input: object }) }),
  z.strictObject({
    toolResult: z.strictObject({
      toolUseId: callId,
      content: z.array(converseText),
      status: z.enum(['success', 'error']).optional(),
    }),
  }),
])
export const converse = z.strictObject({
  system: z.array(z.union([converseText, cachePoint])).optional(),
  messages: z
    .array(z.strictObject({ role: z.enum(['user', 'assistant']), content: z.array(converseBlock).min(1) }))
    .min(1)
    .refine(
      (turns) => turns.every(({ role }, at) => role === (at % 2 === 0 ? 'user' : 'assistant')),
      'alternates and begins with the user',
    ),
  inferenceConfig: z
    .strictObject({
      maxTokens: z.int().positive().optional(),
      temperature: z.number().optional(),
      topP: z.number().optional(),
      stopSequences: z.array(z.string()).optional(),
    })
    .optional(),
  toolConfig: z
    .strictObject({
      tools: z
        .array(
          z.union([
            cachePoint,
            z.strictObject({
              toolSpec: z.strictObject({
                name: toolName,
                description: words.optional(),
                inputSchema: z.strictObject({ json: z.looseObject({ type: z.literal('object') }) }),
                strict: z.boolean().optional(),
              }),
            }),
          ]),
        )
        .min(1),
      toolChoice: z.union([z.strictObject({ auto: object }), z.strictObject({ any: object })]).optional(),
    })
    .optional(),
  additionalModelRequestFields: object.optional(),
  requestMetadata: z.record(z.string(), z.string().max(256)).optional(),
})
