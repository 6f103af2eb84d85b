/** The clients of the matrix, as they open a conversation, and the providers that they meet. */
import { join, resolve } from 'node:path'
import { type JsonObject, parseObject } from '../../../src/languages/reading/json-value.ts'
import type { CallerLanguage } from './callers.ts'

export interface Client {
  name: string
  language: CallerLanguage
  /** In `test/fakes/agent-requests`; with `.jsonl` the frames of a WebSocket. */
  file: string
  /** A member that this client leaves out of its messages here. */
  without?: string
}

export const clients: readonly Client[] = [
  { name: 'Claude Code', language: 'messages', file: 'claude-code.json' },
  { name: 'Claude Code, older models', language: 'messages', file: 'claude-code-skills-in-user-turn.json' },
  { name: 'Codex', language: 'responses', file: 'codex.json' },
  { name: 'Codex, tools in the input', language: 'responses', file: 'codex-tools-in-input.json' },
  { name: 'Codex over WebSocket', language: 'responses', file: 'codex-websocket.jsonl' },
  // It marks what to cache for models that have `claude` in their name, and for no other.
  { name: 'opencode', language: 'chat', file: 'opencode.json', without: 'cache_control' },
  { name: 'opencode, model named claude', language: 'chat', file: 'opencode.json' },
  { name: 'aider', language: 'chat', file: 'aider.json' },
  { name: 'Cline', language: 'chat', file: 'cline.json' },
  { name: 'Gemini CLI', language: 'gemini', file: 'gemini-cli.json' },
]

/** The requests of a client's file in their order. */
export async function requestsOf({ file, without }: Client): Promise<JsonObject[]> {
  const text = await Bun.file(join(resolve(import.meta.dir, '../../fakes/agent-requests'), file)).text()
  const values = file.endsWith('.jsonl') ? text.trim().split('\n') : [text]
  const kept = (name: string, member: unknown): unknown => (name === without ? undefined : member)
  return values.map((value) => parseObject(JSON.stringify(JSON.parse(value, kept))) ?? {})
}

export interface Column {
  /** Also the name of the catalog's model. */
  name: string
  kind: string
  upstreamModel: string
  /** Of the fake's address; the kinds add their own paths. */
  base: '/v1' | ''
  families?: readonly string[]
  apiKey?: string
  headers?: Readonly<Record<string, string>>
}

const aws = { kind: 'bedrock', base: '', apiKey: 'AKID:secret', headers: { region: 'eu-central-1' } } as const

export const columns: readonly Column[] = [
  { name: 'openai', kind: 'openai', upstreamModel: 'gpt-5.5', base: '/v1' },
  { name: 'openai-chat-only', kind: 'openai', upstreamModel: 'qwen3-coder', base: '/v1', families: ['chat'] },
  { name: 'azure-openai', kind: 'azure-openai', upstreamModel: 'gpt-5-codex', base: '' },
  { name: 'anthropic', kind: 'anthropic', upstreamModel: 'claude-opus-5-5', base: '' },
  { name: 'gemini', kind: 'gemini', upstreamModel: 'gemini-3.1-pro-preview', base: '' },
  { ...aws, name: 'bedrock-claude', upstreamModel: 'anthropic.claude-sonnet-4-5-20250929-v1:0' },
  { ...aws, name: 'bedrock-nova', upstreamModel: 'amazon.nova-pro-v1:0' },
]

/** The simulator's model, which answers within the process, in text alone. */
export const simulatorModel = 'simulator/echo'
