/** What Gemini is asked. */
import { describe, expect, test } from 'bun:test'
import { Failure } from '../../../failure.ts'
import type { LanguageName, NeutralPart, NeutralRequest } from '../../neutral.ts'
import { plainRequest } from '../../testing/samples.ts'
import { gemini } from './language.ts'

const { provider } = gemini

const request = (members: Partial<NeutralRequest> = {}): NeutralRequest => ({
  ...plainRequest,
  model: 'gemini-3-pro',
  ...members,
})

function refused(members: Partial<NeutralRequest>): string | null {
  try {
    provider.writeRequest(request(members))
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code === 'translation_unsupported') return thrown.param
    throw thrown
  }
  return null
}

const asking = (...parts: NeutralPart[]): Partial<NeutralRequest> => ({
  turns: [{ role: 'user', parts, at: 'messages.0' }],
})
const at = 'messages.0.content.1'
const call = (id: string, signature?: string, language: LanguageName = 'gemini'): NeutralPart => ({
  kind: 'tool_call',
  id,
  name: 'look',
  arguments: '{"a":1}',
  ...(signature !== undefined && { signature: { text: signature, language } }),
  at,
})
const result = (callId: string, isError = false): NeutralPart => ({
  kind: 'tool_result',
  callId,
  name: null,
  parts: [{ kind: 'text', text: 'seen', at }],
  isError,
  at,
})

describe('a request for Gemini', () => {
  test('sends no tool choice without tools', () => {
    const toolChoice = { value: 'auto' as const, at: 'tool_choice' }
    expect(provider.writeRequest(request({ toolChoice }))).not.toHaveProperty('toolConfig')
  })

  test('has instructions, tools, output, sampling and thinking where the API has them', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const written = provider.writeRequest(
      request({
        instructions: [{ kind: 'text', text: 'Be brief', at: 'system' }],
        tools: [{ name: 'look', description: 'Looks', parameters: schema, strict: true, at: 'tools.0' }],
        output: {
          value: { form: 'schema', name: 'n', description: 'd', schema, strict: true },
          at: 'response_format',
        },
        sampling: {
          maxOutputTokens: { value: 9, at: 'max_tokens' },
          topK: { value: 3, at: 'top_k' },
          seed: { value: 5, at: 'seed' },
          stop: { value: ['!'], at: 'stop' },
        },
        reasoning: { value: { effort: 'low', budgetTokens: null, visible: true }, at: 'reasoning_effort' },
      }),
    )
    expect(written).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      systemInstruction: { parts: [{ text: 'Be brief' }] },
      tools: [{ functionDeclarations: [{ name: 'look', description: 'Looks', parametersJsonSchema: schema }] }],
      toolConfig: { functionCallingConfig: { mode: 'VALIDATED' } },
      generationConfig: {
        maxOutputTokens: 9,
        topK: 3,
        seed: 5,
        stopSequences: ['!'],
        responseMimeType: 'application/json',
        responseJsonSchema: { ...schema, description: 'd' },
        thinkingConfig: { thinkingLevel: 'LOW', includeThoughts: true },
      },
    })
  })

  test('thinks by a budget before the third generation', () => {
    const thinking = (model: string, effort: 'none' | 'medium' | null, budgetTokens: number | null = null) =>
      provider.writeRequest(
        request({ model, reasoning: { value: { effort, budgetTokens, visible: null }, at: 'reasoning_effort' } }),
      ).generationConfig
    expect(thinking('gemini-2.5-flash', 'medium')).toEqual({ thinkingConfig: { thinkingBudget: 8192 } })
    expect(thinking('gemini-2.5-flash', 'none')).toEqual({ thinkingConfig: { thinkingBudget: 0 } })
    expect(thinking('gemini-2.5-flash', null)).toEqual({
      thinkingConfig: { thinkingBudget: -1, includeThoughts: true },
    })
    expect(thinking('gemini-3-pro', null, 500)).toEqual({
      thinkingConfig: { thinkingBudget: 500, includeThoughts: true },
    })
    expect(() => thinking('gemini-3-pro', 'none')).toThrow()
  })

  test('answers calls in the user’s turn right after them, with the calls’ names', () => {
    const { contents } = provider.writeRequest(
      request({
        turns: [
          { role: 'assistant', parts: [call('a', 'signed'), call('b')], at: 'm' },
          { role: 'tool', parts: [result('a')], at: 'm' },
          { role: 'tool', parts: [result('b', true)], at: 'm' },
          { role: 'user', parts: [{ kind: 'text', text: 'and?', at }], at: 'm' },
        ],
      }),
    )
    expect(contents).toEqual([
      {
        role: 'model',
        parts: [
          { functionCall: { id: 'a', name: 'look', args: { a: 1 } }, thoughtSignature: 'signed' },
          { functionCall: { id: 'b', name: 'look', args: { a: 1 } } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'a', name: 'look', response: { output: 'seen' } } },
          { functionResponse: { id: 'b', name: 'look', response: { error: 'seen' } } },
          { text: 'and?' },
        ],
      },
    ])
  })

  test('lets the first call of a step without a signature pass the check of newer models', () => {
    const parts = (model: string) =>
      provider.writeRequest(request({ model, ...fromModel(call('a'), call('b')) })).contents
    expect(JSON.stringify(parts('gemini-3-pro')).match(/skip_thought_signature_validator/g)).toHaveLength(1)
    expect(JSON.stringify(parts('gemini-2.5-pro'))).not.toContain('skip_thought_signature_validator')
  })

  test('leaves out thoughts that Gemini has not signed', () => {
    const thought = { kind: 'thought', text: 'hm', signature: 's', redacted: null, at } as const
    const parts: NeutralPart[] = [
      { ...thought, language: 'messages' },
      { ...thought, language: 'gemini' },
      call('a', "another's", 'chat'),
      call('b', 'own'),
    ]
    expect(provider.writeRequest(request({ model: 'gemini-2.5-pro', ...fromModel(...parts) })).contents).toEqual([
      {
        role: 'model',
        parts: [
          { text: 'hm', thought: true, thoughtSignature: 's' },
          { functionCall: { id: 'a', name: 'look', args: { a: 1 } } },
          { functionCall: { id: 'b', name: 'look', args: { a: 1 } }, thoughtSignature: 'own' },
        ],
      },
    ])
  })

  test('takes media as bytes and by address', () => {
    const png = { kind: 'image', mediaType: 'image/png', source: { base64: 'AA==' }, at } as const
    const pdf = {
      kind: 'document',
      mediaType: null,
      source: { url: 'https://host/a.pdf' },
      title: 'a.pdf',
      at,
    } as const
    const low = { detail: { value: 'low', at: `${at}.detail` } }
    const { contents } = provider.writeRequest(request(asking(png, pdf)))
    expect(contents).toEqual([
      {
        role: 'user',
        parts: [
          { inlineData: { mimeType: 'image/png', data: 'AA==' } },
          { text: 'a.pdf' },
          { fileData: { fileUri: 'https://host/a.pdf' } },
        ],
      },
    ])
    expect(provider.writeRequest(request(asking({ ...png, ...low }))).generationConfig).toEqual({
      mediaResolution: 'MEDIA_RESOLUTION_LOW',
    })
    expect(refused(asking({ ...png, ...low }, png))).toBe(`${at}.detail`)
  })

  test('refuses what the language cannot express, and names the caller’s field', () => {
    const tools = [{ name: 'look', description: null, parameters: null, strict: null, at: 'tools.0' }]
    expect(refused({ parallelTools: { value: false, at: 'parallel_tool_calls' }, tools })).toBe('parallel_tool_calls')
    expect(refused({ turns: [{ role: 'system', parts: [], at: 'messages.3' }] })).toBe('messages.3')
    expect(refused({ extras: new Map([['logprobs', { value: true, at: 'logprobs' }]]) })).toBe('logprobs')
    expect(refused({ sampling: { stop: { value: [...'abcdef'], at: 'stop' } } })).toBe('stop')
    expect(refused(asking({ kind: 'image', mediaType: null, source: { fileId: 'f' }, at }))).toBe(at)
    expect(refused(asking(result('unheard-of')))).toBe(at)
    const hard = { value: { effort: 'xhigh', budgetTokens: null, visible: null }, at: 'reasoning_effort' } as const
    expect(refused({ reasoning: hard })).toBe('reasoning_effort')
  })
})

const fromModel = (...parts: NeutralPart[]): Partial<NeutralRequest> => ({
  turns: [{ role: 'assistant', parts, at: 'messages.0' }],
})
