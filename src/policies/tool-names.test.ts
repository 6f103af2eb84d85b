import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { calledTools, namesOfTool, offeredTools } from './tool-names.ts'

/** Whatever some readers take for a list of one. */
const containers = fc
  .array(
    fc.constantFrom<(inner: unknown) => unknown>(
      (inner) => [inner],
      (inner) => ({ 0: inner }),
      (inner) => ['ls', inner, null],
      (inner) => ({ 0: { type: 'function', function: { name: 'ls' } }, 12: inner }),
      (inner) => ({ items: [inner] }),
    ),
    { maxLength: 6 },
  )
  .map((around) => (inner: unknown) => around.reduce((value, wrap) => wrap(value), inner))

const tools = [
  { type: 'function', function: { name: 'rm', parameters: { type: 'object', properties: { name: {} } } } },
  { type: 'custom', custom: { name: 'rm' } },
  { type: 'custom', function: { name: 'ls' }, custom: { name: 'rm' } },
  { name: 'rm', description: 'removes', input_schema: { type: 'object', required: ['name'] } },
  { type: 'function', function: [{ name: 'rm' }] },
  { type: 'namespace', name: 'files', tools: { 0: [{ type: 'function', name: 'rm' }] } },
  { functionDeclarations: [{ name: 'rm', parameters: {} }] },
  { rm: { description: 'removes' } },
  { type: 'rm' },
  'rm',
]

describe('reads a tool name from every shape of tool', () => {
  for (const tool of tools) {
    test(JSON.stringify(tool), () => {
      fc.assert(
        fc.property(containers, fc.constantFrom('tools', 'functions'), (container, member) => {
          const names = offeredTools({ model: 'm', [member]: container(tool) })
          expect(new Set(names.filter((name) => name !== 'ls'))).toEqual(new Set(['rm']))
        }),
      )
    })
  }

  test('reads the tool names of calls in an answer', () => {
    const call = { id: '1', type: 'function', function: { name: 'rm', arguments: '{"name":"x"}' } }
    const answers: ((container: (inner: unknown) => unknown) => Record<string, unknown>)[] = [
      (container) => ({ choices: container({ index: 0, message: { role: 'assistant', tool_calls: [call] } }) }),
      (container) => ({ choices: [{ index: 0, message: container({ tool_calls: { 0: [call] } }) }] }),
      (container) => ({ choices: [{ index: 0, message: { tool_calls: container(call) } }] }),
      (container) => ({ choices: [{ message: { function_call: container({ name: 'rm', arguments: {} }) } }] }),
      (container) => ({ output: container({ type: 'function_call', name: 'rm', arguments: '{}' }) }),
      (container) => ({ content: container({ type: 'tool_use', name: 'rm', input: { 0: { name: 'x' } } }) }),
    ]
    fc.assert(
      fc.property(containers, fc.constantFrom(...answers), (container, answer) => {
        expect(calledTools(answer(container)).filter((name) => name !== 'ls')).toEqual(['rm'])
      }),
    )
  })
})

test('reads no name from a value that is no tool or only a part of one', () => {
  expect(offeredTools(null)).toEqual([])
  expect(offeredTools({ model: 'm', tools: null })).toEqual([])
  expect(namesOfTool({ function: { parameters: { title: { type: 'object' } } } })).toEqual([])
  expect(calledTools({ choices: [{ delta: { tool_calls: [{ function: { name: 'r' } }] } }] })).toEqual([])
  expect(calledTools({ choices: [{ message: { content: 'rm', tool_calls: null } }], tools: [{ name: 'rm' }] })).toEqual(
    [],
  )
})
