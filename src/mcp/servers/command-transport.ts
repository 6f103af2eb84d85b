/**
 * A local MCP server: a child process of the gateway that speaks JSON-RPC by lines on its pipes (Model Context
 * Protocol, Transports, stdio). It gets PATH and the environment of its record, nothing else of the gateway. Of its
 * standard error only the length is logged, because programs write there what they were called with, which may be a
 * caller's secret or prompt. It ends with the session: its input is closed, then its process group gets SIGTERM, then
 * SIGKILL. If this process is killed, the group is killed at once.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { Failure } from '../../failure.ts'
import { killWithParent } from '../../lib/host/kill-with-parent.ts'
import { signalGroup } from '../../lib/host/platform.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Json } from '../connection.ts'
import type { Receiver, Transport } from './transport.ts'

const endMilliseconds = 300
const killMilliseconds = 1000
const lineFeed = 0x0a

export interface CommandTransportOptions {
  server: string
  program: string
  args: readonly string[]
  environment: Readonly<Record<string, string>>
  path: string
  /** The largest message that is read, and the most that may wait to be written. */
  limit: number
  log: Log
  /** Called once, when the child has ended. */
  onEnd(): void
}

export class CommandTransport implements Transport {
  readonly closesStreams = false
  readonly #options: CommandTransportOptions
  readonly #receiver: Receiver
  readonly #child: ChildProcess
  readonly #ended = Promise.withResolvers<void>()
  #held: Buffer[] = []
  #heldLength = 0
  #complained = 0
  #over = false
  #gone = false
  #closing: Promise<void> | null = null
  #letGo: () => void = () => undefined

  constructor(options: CommandTransportOptions, receiver: Receiver) {
    this.#options = options
    this.#receiver = receiver
    const { program, args, environment, path } = options
    this.#child = spawn(program, [...args], {
      cwd: '/',
      env: { PATH: path, ...environment },
      stdio: ['pipe', 'pipe', 'pipe'],
      // A process group of its own, so that its children end with it.
      detached: true,
    })
    this.#bind()
    this.#child.stdout?.on('data', (chunk: Buffer) => this.#take(chunk))
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#complained += chunk.length
    })
    this.#child.stdin?.on('error', () => this.#fail('The command no longer reads its input'))
    this.#child.on('error', () => this.#end('The command could not be started'))
    this.#child.on('exit', () => this.#end('The command has ended'))
    this.#child.on('close', () => this.#logComplaints())
  }

  request(message: Json, id: number): () => void {
    this.#write(message).catch((error: unknown) =>
      this.#receiver.lost(id, error instanceof Error ? error : unwritable()),
    )
    return nothingToEnd
  }

  notify(message: Json): Promise<void> {
    return this.#write(message)
  }

  ready(): void {
    // A pipe has no session.
  }

  /** Only once: after the group has ended, its number may be reused. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#over = true
    this.#child.stdin?.end()
    const toEnd = setTimeout(() => this.#signal('SIGTERM'), endMilliseconds)
    const toKill = setTimeout(() => this.#signal('SIGKILL'), killMilliseconds)
    await this.#ended.promise
    clearTimeout(toEnd)
    clearTimeout(toKill)
    // Processes that it started and left behind.
    this.#signal('SIGKILL')
    this.#letGo()
  }

  async #write(message: Json): Promise<void> {
    const { stdin } = this.#child
    if (this.#over || stdin === null || stdin.writableLength > this.#options.limit) throw unwritable()
    stdin.write(`${JSON.stringify(message)}\n`)
  }

  #take(chunk: Buffer): void {
    let rest = chunk
    for (let end = rest.indexOf(lineFeed); end >= 0 && !this.#over; end = rest.indexOf(lineFeed)) {
      const line = Buffer.concat([...this.#held, rest.subarray(0, end)])
      this.#held = []
      this.#heldLength = 0
      rest = rest.subarray(end + 1)
      this.#line(line)
    }
    if (this.#over || rest.length === 0) return
    this.#held.push(rest)
    this.#heldLength += rest.length
    if (this.#heldLength > this.#options.limit) this.#tooLarge()
  }

  #line(line: Buffer): void {
    if (line.length > this.#options.limit) this.#tooLarge()
    if (this.#over) return
    const text = line.toString('utf8').trim()
    if (text === '') return
    try {
      this.#receiver.message(text)
    } catch (error) {
      // Programs often write to the wrong pipe; the next line may be a message.
      if (!(error instanceof SyntaxError)) throw error
    }
  }

  #tooLarge(): void {
    this.#held = []
    this.#over = true
    this.#receiver.broken(new Failure('mcp.result_too_large'))
  }

  #fail(message: string): void {
    if (this.#over) return
    this.#over = true
    this.#receiver.broken(new Failure('mcp.server_unreachable', { message }))
  }

  #end(message: string): void {
    this.#over = true
    this.#receiver.broken(new Failure('mcp.server_unreachable', { message }))
    if (this.#gone) return
    this.#gone = true
    this.#ended.resolve()
    this.#options.onEnd()
  }

  #logComplaints(): void {
    const { log, server } = this.#options
    if (this.#complained === 0) return
    log.info({ mcp_server: server, bytes: this.#complained }, 'An MCP server wrote to its standard error')
  }

  /** Makes it end with this process. */
  #bind(): void {
    const { pid } = this.#child
    if (pid === undefined) return
    try {
      this.#letGo = killWithParent(pid)
    } catch (error) {
      const { log, server } = this.#options
      log.warn(
        { mcp_server: server, error: String(error) },
        'A local command may keep running after its gateway is killed',
      )
    }
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (pid !== undefined) signalGroup(pid, signal)
  }
}

const nothingToEnd = (): void => undefined

const unwritable = (): Failure =>
  new Failure('mcp.server_unreachable', { message: 'The command no longer reads its input' })
