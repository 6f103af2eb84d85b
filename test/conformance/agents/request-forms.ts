/**
 * What each kind of provider takes as a request, as strictly as the provider itself: members that must be there, none
 * that it does not know, and names of tools by its rule. Written from the providers' references (OpenAI, Anthropic,
 * Gemini API, AWS Bedrock Converse) and from requests that agents send them.
 */
import { z } from 'zod'

export type Wire = 'chat' | 'responses' | 'messages' | 'gemini' | 'converse'

const object = z.record(z.string(), z.unknown())
const toolName = z.string().regex(/^[\w-]{1,64}$/)
const callId = z.string().regex(/^[\w-]{1,64}$/)
const words = z.string().min(1)
const parsed = (text: string): unknown => JSON.parse(text)
const jsonText = z.string().transform((text, context) => {
  try {
    return parsed(text)
  } catch {
    context.addIssue('is no JSON')
    return z.NEVER
  }
})

const chatText = z.strictObject({ type: z.literal('text'), text: words, cache_control: object.optional() })
const chatContent = z.union([z.string(), z.array(chatText).min(1)])
const chatCall = z.strictObject({
  id: z.string().min(1),
  type: z.literal('function'),
  function: z.strictObject({ name: toolName, arguments: jsonText }),
})
export const chat = z.strictObject({
  model: words,
  messages: z
    .array(
      z.discriminatedUnion('role', [
        z.strictObject({ role: z.enum(['system', 'developer', 'user']), content: chatContent }),
        z.strictObject({
          role: z.literal('assistant'),
          content: chatContent.nullish(),
          tool_calls: z.array(chatCall).min(1).optional(),
        }),
        z.strictObject({ role: z.literal('tool'), tool_call_id: z.string().min(1), content: chatContent }),
      ]),
    )
    .min(1),
  stream: z.literal(true),
  stream_options: z.strictObject({ include_usage: z.literal(true) }),
  tools: z
    .array(
      z.strictObject({
        type: z.literal('function'),
        function: z.strictObject({
          name: toolName,
          description: z.string().optional(),
          parameters: object.optional(),
          strict: z.boolean().nullish(),
        }),
      }),
    )
    .min(1)
    .optional(),
  tool_choice: z.enum(['auto', 'none', 'required']).optional(),
  parallel_tool_calls: z.boolean().optional(),
  temperature: z.number().min(0).max(2).optional(),
  top_p: z.number().min(0).max(1).optional(),
  max_tokens: z.int().positive().optional(),
  max_completion_tokens: z.int().positive().optional(),
  reasoning_effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']).optional(),
  verbosity: z.enum(['low', 'medium', 'high']).optional(),
  prompt_cache_key: z.string().optional(),
  safety_identifier: z.string().max(64).optional(),
  user: z.string().optional(),
  store: z.boolean().optional(),
  metadata: z.record(z.string(), z.string().max(512)).optional(),
})

const inputText = z.strictObject({ type: z.enum(['input_text', 'output_text']), text: z.string() }).or(
  z.strictObject({
    type: z.literal('output_text'),
    text: z.string(),
    annotations: z.array(z.unknown()),
    logprobs: z.array(z.unknown()).optional(),
  }),
)
const itemOf = { id: z.string().optional(), status: z.string().optional() }
const responsesFunction = z.strictObject({
  type: z.literal('function'),
  name: toolName,
  description: z.string().nullish(),
  parameters: object,
  strict: z.boolean().nullish(),
})
const responsesTool = z.discriminatedUnion('type', [
  responsesFunction,
  z.strictObject({
    type: z.literal('custom'),
    name: toolName,
    description: z.string().optional(),
    format: object.optional(),
  }),
  z.looseObject({ type: z.literal('web_search') }),
])
const namespaceTool = z.strictObject({
  type: z.literal('namespace'),
  name: toolName,
  description: z.string(),
  tools: z.array(responsesTool).min(1),
})
const anyResponsesTool = z.union([responsesTool, namespaceTool])
export const responses = z.strictObject({
  model: words,
  instructions: z.string().nullish(),
  input: z
    .array(
      z.union([
        z.strictObject({
          ...itemOf,
          type: z.literal('message').optional(),
          role: z.enum(['user', 'assistant', 'system', 'developer']),
          content: z.union([z.string(), z.array(inputText).min(1)]),
        }),
        z.strictObject({
          ...itemOf,
          type: z.literal('function_call'),
          call_id: callId,
          name: toolName,
          namespace: z.string().optional(),
          arguments: jsonText,
        }),
        z.strictObject({
          ...itemOf,
          type: z.literal('custom_tool_call'),
          call_id: callId,
          name: toolName,
          namespace: z.string().optional(),
          input: z.string(),
        }),
        z.strictObject({
          ...itemOf,
          type: z.enum(['function_call_output', 'custom_tool_call_output']),
          call_id: callId,
          output: z.string(),
        }),
        z.strictObject({
          ...itemOf,
          type: z.literal('additional_tools'),
          role: z.literal('developer'),
          tools: z.array(anyResponsesTool),
        }),
      ]),
    )
    .min(1),
  stream: z.literal(true),
  tools: z.array(anyResponsesTool).optional(),
  tool_choice: z.enum(['auto', 'none', 'required']).optional(),
  parallel_tool_calls: z.boolean().optional(),
  reasoning: z
    .strictObject({
      effort: z.string().optional(),
      summary: z.string().nullish(),
      context: z.string().optional(),
    })
    .nullish(),
  store: z.boolean().optional(),
  include: z.array(z.string()).optional(),
  text: z.strictObject({ verbosity: z.string().optional(), format: object.optional() }).optional(),
  prompt_cache_key: z.string().optional(),
  client_metadata: object.optional(),
  max_output_tokens: z.int().min(16).optional(),
  temperature: z.number().optional(),
  top_p: z.number().optional(),
  metadata: object.optional(),
  safety_identifier: z.string().optional(),
})

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
  z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: words }),
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

const geminiPart = z.union([
  z.strictObject({ text: words, thought: z.boolean().optional(), thoughtSignature: z.string().optional() }),
  z.strictObject({
    functionCall: z.strictObject({ id: z.string().optional(), name: words, args: object.optional() }),
    thoughtSignature: z.string().optional(),
  }),
  z.strictObject({
    functionResponse: z.strictObject({ id: z.string().optional(), name: words, response: object }),
  }),
])
export const gemini = z.strictObject({
  contents: z
    .array(z.strictObject({ role: z.enum(['user', 'model']), parts: z.array(geminiPart).min(1) }))
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
