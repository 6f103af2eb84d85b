/**
 * Coding agents × kinds of providers through the executable: each agent opens with its recorded request, the scripted
 * provider calls its tools, the agent sends the results, the provider answers with text. A cell passes when both turns
 * are read by the agent's official client with calls, text and usage unchanged, the provider takes both requests and
 * gets its signatures back, each turn is recorded once at its price, and the policies that the handbook shows allow
 * both.
 */
import { z } from 'zod'
import { readPages } from '../../../src/handbook/read-pages.ts'
import { isObject, type JsonObject, objectsOf } from '../../../src/languages/reading/json-value.ts'
import { type FakeUpstream, startFakeUpstream } from '../../fakes/upstream.ts'
import type { Event } from '../../support/answers.ts'
import { api, createToken, expectAnswer } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../../support/harness.ts'
import { eventsInLedger } from '../../support/recorded.ts'
import { type Answer, type Conversation, NoAnswer, overHttp, overWebSocket, type Target } from './callers.ts'
import { type Client, type Column, clients, columns, requestsOf, simulatorModel } from './rows-and-columns.ts'
import { type Asked, playAgentTask } from './scripted-provider.ts'
import {
  callSignature,
  closingText,
  openingText,
  patchText,
  patchTool,
  shellInput,
  shellTools,
  thought,
  used,
} from './task.ts'

export interface Cell {
  client: string
  provider: string
  /** What is wrong; empty where the cell passes. */
  faults: string[]
  /** What the translation leaves out or replaces, as the outcome event notes it. */
  notes: string[]
  /** How many calls of tools reached the client. */
  calls: number
}

/** Dollars a million tokens. */
const price = { input_per_million: 10, cached_input_per_million: 1, output_per_million: 30 }
const turnCost = ((used.input - used.cached) * 10 + used.cached * 1 + used.output * 30) / 1e6

const record = z.looseObject({ id: z.string() })

/** The pages whose policies are meant for every request. */
const policyPages = ['policies', 'policies/pii', 'policies/secrets', 'policies/prompt-injection']

async function handbookPolicies(): Promise<JsonObject[]> {
  const pages = (await readPages()).filter(({ path }) => policyPages.includes(path))
  const files = pages.flatMap(({ text }) => [...text.matchAll(/^```yaml file=\S+\n([\s\S]*?)^```$/gm)])
  return files.flatMap(([, yaml = '']) => {
    const file: unknown = Bun.YAML.parse(yaml)
    return isObject(file) ? [...objectsOf(file.policies)] : []
  })
}

export interface Installation extends AsyncDisposable {
  gatehouse: Gatehouse
  upstream: FakeUpstream
  token: string
  /** What the provider was asked. */
  asked: readonly Asked[]
}

/**
 * Gatehouse in front of the scripted provider, with a model of each column and, unless told, the handbook's policies.
 */
export async function startInstallation({ policies = true } = {}): Promise<Installation> {
  const upstream = await startFakeUpstream()
  const gatehouse = await startGatehouse()
  const make = async (path: string, body: object) => expectAnswer(await api(gatehouse, path, { body }), 201, record)
  const { origin } = new URL(upstream.baseUrl)
  const asked = playAgentTask(upstream, ['', ...columns.map(({ upstreamModel }) => upstreamModel)])
  for (const column of columns) await makeColumn(column, origin, make)
  const names = new Set<unknown>()
  for (const policy of policies ? await handbookPolicies() : []) {
    if (!names.has(policy.name)) await make('/v1/policies', policy)
    names.add(policy.name)
  }
  const { token_value: token } = await createToken(gatehouse)
  const installation: Installation = {
    ...{ gatehouse, upstream, token, asked },
    async [Symbol.asyncDispose]() {
      await gatehouse.stop()
      await upstream.close()
    },
  }
  await eventually(() => isServed(installation))
  return installation
}

async function makeColumn(
  column: Column,
  origin: string,
  make: (path: string, body: object) => Promise<{ id: string }>,
): Promise<void> {
  const { name, kind, base, upstreamModel, families, apiKey = 'key', headers } = column
  const provider = await make('/v1/catalog/providers', {
    ...{ name, kind, base_url: origin + base, api_key: apiKey },
    ...(headers && { headers }),
  })
  // Agents behave by a model's name, so real ones ask for it by the provider's own.
  const ids = kind === 'bedrock' ? [name] : [name, upstreamModel]
  const model = { provider_id: provider.id, upstream_model: upstreamModel, price, ...(families && { families }) }
  for (const id of ids) await make('/v1/catalog/models', { ...model, id })
}

/** Changes reach a gateway after the answer that made them. */
async function isServed({ gatehouse, token }: Installation): Promise<boolean> {
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/models`, { headers: { authorization: `Bearer ${token}` } })
  const text = await answer.text()
  return columns.every(({ name }) => text.includes(`"${name}"`))
}

interface Played {
  cell: Cell
  /** The ids by which the turns are recorded; none where the provider is the simulator's. */
  requestIds: readonly string[]
  simulated: boolean
}

/** Plays every client against every provider, some at once, and gives the cells row by row. */
export async function playMatrix(installation: Installation): Promise<Cell[]> {
  const pairs = clients.flatMap((client) =>
    [...columns.map(({ name }) => name), simulatorModel].map((model) => ({ client, model })),
  )
  const played: Played[] = []
  let next = 0
  const work = async () => {
    for (let at = next++; at < pairs.length; at = next++) {
      const pair = pairs[at]
      if (pair !== undefined) played[at] = await play(installation, pair.client, pair.model, `agents-${at}`)
    }
  }
  await Promise.all(Array.from({ length: 6 }, work))
  const answered = played.flatMap(({ requestIds }) => requestIds)
  const events = await eventually(() => {
    const found = eventsInLedger(installation.gatehouse)
    const ids = new Set(found.filter(isOutcome).map(({ request_id }) => request_id))
    if (answered.every((id) => ids.has(id))) return found
    throw new Error(`No outcome of ${answered.filter((id) => !ids.has(id)).join()}`)
  })
  for (const each of played) checkRecords(each, events)
  for (const [at, { cell, simulated }] of played.entries()) {
    const client = pairs[at]?.client
    if (!simulated && cell.faults.length === 0 && client !== undefined)
      cell.faults.push(
        ...(await lostTexts(
          client,
          columns.find(({ name }) => name === cell.provider),
          installation,
        )),
      )
  }
  return played.map(({ cell }) => cell)
}

const isOutcome = ({ event_type }: Event): boolean => event_type === 'gateway.request.outcome'

async function play({ gatehouse, token }: Installation, client: Client, model: string, id: string): Promise<Played> {
  const cell: Cell = { client: client.name, provider: model, faults: [], notes: [], calls: 0 }
  const simulated = model === simulatorModel
  const target: Target = { url: gatehouse.gatewayUrl, token, model }
  const socket = client.file.endsWith('.jsonl')
  const requestIds: string[] = []
  const turn = async (number: number, conversation: Conversation, body: JsonObject): Promise<Answer | null> => {
    // The frame that opens a WebSocket is its first.
    const requestId = socket ? `${id}.${number + 1}` : `${id}-${number}`
    requestIds.push(requestId)
    try {
      return await conversation.ask(body, requestId)
    } catch (thrown) {
      if (!(thrown instanceof NoAnswer)) throw thrown
      cell.faults.push(`turn ${number}: ${thrown.message}`)
      return null
    }
  }
  const [opening = {}, asking = opening] = await requestsOf(client)
  const conversation = socket ? await overWebSocket(target, opening, id) : overHttp(client.language, target)
  const first = await turn(1, conversation, asking)
  const second = first === null ? null : await turn(2, conversation, first.next)
  conversation.close()
  cell.calls = first?.calls.length ?? 0
  const namespace = JSON.stringify(asking).includes('"name":"functions"') ? 'functions' : null
  const expected = {
    namespace,
    tools: hasTools(asking),
    usage: client.language !== 'chat' || asking.stream_options !== undefined,
  }
  if (!simulated && first !== null) cell.faults.push(...faultsOfFirst(first, expected))
  if (!simulated && second !== null) cell.faults.push(...faultsOf(second, closingText, expected))
  return { cell, requestIds, simulated }
}

/** Texts of an opening request, and signatures of the answer to it, that never reached the provider together. */
async function lostTexts(client: Client, column: Column | undefined, { asked }: Installation): Promise<string[]> {
  if (column === undefined) return []
  const prompts = (await requestsOf(client)).slice(0, 2).flatMap((body) => promptsOf(body))
  const texts = [...prompts, ...signaturesBack(client, column)]
  const told = asked
    .filter(({ path, body }) =>
      [body?.model, decodeURIComponent(path)].some((said) => `${said}`.includes(column.upstreamModel)),
    )
    .map(({ body }) => stringsOf(body).join('\n'))
  if (told.some((all) => texts.every((text) => all.includes(text)))) return []
  return ['a text of the request, or a signature of the answer, did not reach the provider']
}

/** What the second turn brings back of the first answer. Chat's official client keeps no thoughts. */
function signaturesBack({ language }: Client, { kind, families }: Column): string[] {
  if (language === 'chat') return []
  if (kind === 'gemini') return [callSignature]
  const speaksResponses = language === 'responses' && families === undefined
  return kind === 'anthropic' || kind === 'bedrock' || speaksResponses ? [thought.signature] : []
}

const promptMembers = ['text', 'content', 'instructions', 'system']

/** Each text of the conversation and its instructions. */
function promptsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(promptsOf)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, member]) =>
    typeof member === 'string' ? (promptMembers.includes(name) ? [member] : []) : promptsOf(member),
  )
}

function stringsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsOf) : []
}

const hasTools = (body: JsonObject): boolean => JSON.stringify(body).includes('"tools":[')

interface Expected {
  /** That of the tool which is called, where the agent's tools have one. */
  namespace: string | null
  /** The agent names tools. */
  tools: boolean
  /** Its language shows usage unasked, or it asks. */
  usage: boolean
}

function faultsOf({ text, usage }: Answer, expected: string, { usage: shown }: Expected): string[] {
  const seen = shown ? [used.input, used.cached, used.output] : [undefined, undefined, undefined]
  return [
    ...(text === expected ? [] : [`the text arrived as ${JSON.stringify(text)}`]),
    ...(Bun.deepEquals(usage, seen) ? [] : [`the usage arrived as ${JSON.stringify(usage)}`]),
  ]
}

function faultsOfFirst(answer: Answer, expected: Expected): string[] {
  if (!expected.tools) return faultsOf(answer, closingText, expected)
  const wrong = answer.calls.filter(({ name, input, namespace }) => {
    if (namespace !== expected.namespace) return true
    if (name === patchTool) return input !== patchText
    return !shellTools.includes(name) || !Bun.deepEquals(input, shellInput, true)
  })
  return [
    ...faultsOf(answer, openingText, expected),
    ...(answer.calls.length > 0 ? [] : ['no call of a tool arrived']),
    ...wrong.map((call) => `the call arrived as ${JSON.stringify(call)}`),
  ]
}

/** One outcome for each turn, allowed, with nothing rewritten, at the price of its usage. */
function checkRecords({ cell, requestIds, simulated }: Played, events: readonly Event[]): void {
  const notes = new Set<string>()
  for (const [at, id] of requestIds.entries()) {
    const outcomes = events.filter((event) => event.request_id === id && isOutcome(event))
    const [outcome] = outcomes
    if (outcomes.length !== 1) cell.faults.push(`turn ${at + 1}: recorded ${outcomes.length} times`)
    if (outcome === undefined) continue
    const cost = outcome.event_cost_attribution?.cost
    const answered = cell.faults.every((fault) => !fault.startsWith(`turn ${at + 1}:`))
    if (answered && outcome.verdict !== 'allow') cell.faults.push(`turn ${at + 1}: recorded as ${outcome.verdict}`)
    if (answered && !simulated && cost !== turnCost) cell.faults.push(`turn ${at + 1}: costs ${String(cost)}`)
    const { notes: noted } = outcome.details ?? {}
    if (Array.isArray(noted)) for (const note of noted) notes.add(String(note))
  }
  cell.notes = [...notes].toSorted()
}
