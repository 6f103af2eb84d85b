/**
 * One provider that plays a coding agent's task in every wire language: it looks at the request as strictly as the real
 * one (`request-forms.ts`), calls the agent's shell tool and, where there is one, its patch tool in the same answer,
 * and says so in streamed text after the results have come. Its bytes are cut where parsers break.
 */
import { z } from 'zod'
import { type JsonObject, parseObject } from '../../../src/languages/reading/json-value.ts'
import { type SplitPlan, splitPlans } from '../../fakes/splits.ts'
import { type Call, type FakeUpstream, jsonReply, type Reply } from '../../fakes/upstream.ts'
import { type ProviderRequest, readProviderRequest } from './provider-request.ts'
import { streamOf, type Wanted } from './provider-streams.ts'
import type { Wire } from './request-forms.ts'
import { closingParts, openingText, patchText, patchTool, resultText, shellInput, shellTools } from './task.ts'

export interface Asked {
  wire: Wire
  path: string
  body: JsonObject | null
  /** Why the request was refused; null where it was taken. */
  problem: string | null
}

const wireOf = (path: string): Wire => {
  if (path.includes('/chat/completions')) return 'chat'
  if (path.includes('/responses')) return 'responses'
  if (path.includes('/messages')) return 'messages'
  return path.includes('GenerateContent') ? 'gemini' : 'converse'
}

/** Without the namespace that stands before it where the provider's language has none. */
const shortName = (name: string): string => name.split('__').at(-1) ?? name

/** The shell tool, and the patch tool where both may be called at once. */
function wanted(request: ProviderRequest, body: string, number: number): Wanted[] {
  const named = (matches: (name: string) => boolean) => request.tools.find((name) => matches(shortName(name)))
  const [shell, patch] = [named((name) => shellTools.includes(name)), named((name) => name === patchTool)]
  const custom = body.includes('"type":"custom"')
  const call = (full: string, input: object, isCustom: boolean): Wanted => {
    const at = full.lastIndexOf('__')
    const name = shortName(full)
    return { id: `call_${number}_${name}`, name, namespace: at < 0 ? null : full.slice(0, at), input, custom: isCustom }
  }
  return [
    ...(shell === undefined ? [] : [call(shell, shellInput, false)]),
    ...(patch === undefined || !request.parallel ? [] : [call(patch, { input: patchText }, custom)]),
  ]
}

/** A command that changes nothing, as each agent's shell tool takes it. */
const harmless = { command: 'echo from the tool', cmd: 'echo from the tool', description: 'Print a line' }
const inputMembers: Readonly<Record<string, readonly (keyof typeof harmless)[]>> = { exec_command: ['cmd'] }
const hasResult = /[{,]"(?:functionResponse|toolResult)":|"(?:tool_result|function_call_output)"|"role":"tool"/

/** Plays the task for real agents: one call of their shell tool that they can run, and no look at their requests. */
export function playRealTask(upstream: FakeUpstream, models: readonly string[]): void {
  const reply = (call: Call): Reply => {
    const [text, number] = [call.body.toString(), upstream.calls.length]
    const name = shellTools.find((tool) => text.includes(`"name":"${tool}"`))
    const members = inputMembers[name ?? ''] ?? ['command', 'description']
    const input = Object.fromEntries(members.map((member) => [member, harmless[member]]))
    const calls: Wanted[] =
      name === undefined || hasResult.test(text)
        ? []
        : [{ id: `call_${number}`, name, namespace: null, input, custom: false }]
    const parts = calls.length > 0 ? [openingText] : closingParts
    return streamOf(wireOf(call.path), parts, calls, parseObject(text), number)
  }
  for (const model of models) upstream.when(model, reply)
}

/** What is wrong with the results that the agent sent, or null: calls and results must come back unchanged. */
function turnProblem({ tools, calls, results }: ProviderRequest): string | null {
  for (const { id, name, input } of calls) {
    if (!tools.some((tool) => shortName(tool) === shortName(name))) return `the call of ${name} names no tool`
    const expected = shortName(name) === patchTool ? { input: patchText } : shellInput
    if (!Bun.deepEquals(input, expected, true))
      return `the input of ${name} came back changed: ${JSON.stringify(input)}`
    const result = results.find((each) => each.id === id)
    if (result?.text !== resultText) return `the result of ${name} came back changed: ${JSON.stringify(result)}`
  }
  return null
}

const issueText = (thrown: unknown): string => {
  if (!(thrown instanceof z.ZodError)) return thrown instanceof Error ? thrown.message : String(thrown)
  const deepest = (issue: z.core.$ZodIssue): string =>
    issue.code === 'invalid_union' && issue.errors[0] !== undefined
      ? `${issue.path.join('.')}: ${issue.errors.map((each) => each.map(deepest).join(' and ')).join(' | ')}`
      : `${issue.path.join('.')}: ${issue.message}`
  return thrown.issues.map(deepest).join('; ').slice(0, 600)
}

const plans: readonly SplitPlan[] = Object.entries(splitPlans).flatMap(([name, plan]) =>
  name === 'one byte at a time' ? [] : [plan],
)

/**
 * Gives the fake provider these manners for these models; `''` is for those that the body does not name. The list
 * that it returns grows with each request.
 */
export function playAgentTask(upstream: FakeUpstream, models: readonly string[]): readonly Asked[] {
  const asked: Asked[] = []
  const reply = (call: Call): Reply => {
    const number = asked.length + 1
    const wire = wireOf(call.path)
    const text = call.body.toString()
    const body = parseObject(text)
    try {
      const request = readProviderRequest(wire, body)
      const problem = turnProblem(request)
      if (problem !== null) throw new Error(problem)
      asked.push({ wire, path: call.path, body, problem: null })
      const calls = request.results.length > 0 ? [] : wanted(request, text, number)
      const parts = calls.length > 0 ? [openingText] : closingParts
      return { ...streamOf(wire, parts, calls, body, number), split: plans[number % plans.length] ?? (() => []) }
    } catch (thrown) {
      const problem = issueText(thrown)
      asked.push({ wire, path: call.path, body, problem })
      const refusal = {
        type: 'error',
        error: { type: 'invalid_request_error', message: problem, code: null },
        message: problem,
      }
      return { ...jsonReply(Buffer.from(JSON.stringify(refusal))), status: 400 }
    }
  }
  for (const model of models) upstream.when(model, reply)
  return asked
}
