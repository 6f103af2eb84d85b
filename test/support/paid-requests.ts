/**
 * Requests that cost money, sent to several gateways at once as JSON, as streams and by WebSocket, and what the provider
 * bills for each. All ways ask with as many bytes, so that each costs the same at most; the number of a request is its
 * id, and is in its body.
 */
import { z } from 'zod'
import { chatAnswer, chatStream } from '../fakes/chat.ts'
import { type Call, jsonReply, type Reply, streamReply } from '../fakes/upstream.ts'

/** It has no public tokenizer, so its input is bounded by bytes, of which the fake provider may bill each as a token. */
export const paidModel = 'gpt-4o-mini-search-preview'
/** Nano-dollars a token, by the embedded table. */
const [inputPrice, outputPrice] = [150, 600]
const path = '/v1/chat/completions'
const maxOutput = 10

export interface Used {
  input: number
  output: number
}

export const costOf = ({ input, output }: Used): number => input * inputPrice + output * outputPrice

const idOf = (number: number): string => `n${String(number).padStart(6, '0')}`

const question = (number: number, stream: boolean): string =>
  JSON.stringify({
    model: paidModel,
    max_tokens: maxOutput,
    stream,
    messages: [{ role: 'user', content: `${idOf(number)}${stream ? ' ?' : '?'}` }],
  })

/** A token for each byte, and the allowances of a request and of a message. */
export const mostUsed: Used = { input: question(0, true).length + 64 + 16, output: maxOutput }
export const worstCase = costOf(mostUsed)

/** The number of the request that has this id; the frames of a WebSocket add their own number after a dot. */
export const numberOf = (requestId: string): number => Number(/^n(\d{6})/.exec(requestId)?.[1] ?? Number.NaN)

const asked = z.object({
  stream: z.boolean(),
  max_tokens: z.number(),
  messages: z.tuple([z.object({ content: z.string() })]),
})

export interface Bill {
  /** What each request costs that reached the provider, in nano-dollars, by its number. */
  costs: Map<number, number>
  /** How often each reached it. */
  calls: Map<number, number>
  reply(call: Call): Reply
}

/** A provider that says it used so much, and never more output than it was allowed. */
export function billing(used: (number: number) => Used, headersAfterMs = 30): Bill {
  const [costs, calls] = [new Map<number, number>(), new Map<number, number>()]
  return {
    costs,
    calls,
    reply({ body }) {
      const { stream, max_tokens: most, messages } = asked.parse(JSON.parse(body.toString()))
      const number = numberOf(messages[0].content)
      const { input, output: wanted } = used(number)
      const output = Math.min(wanted, most)
      costs.set(number, costOf({ input, output }))
      calls.set(number, (calls.get(number) ?? 0) + 1)
      const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
      return { ...(stream ? streamReply(chatStream({ usage })) : jsonReply(chatAnswer({ usage }))), headersAfterMs }
    },
  }
}

interface Answered {
  /** 0 where the connection broke before the end. */
  status: number
  /** Why it was refused, or null. */
  code: string | null
}

const broken: Answered = { status: 0, code: null }
const whole: Answered = { status: 200, code: null }
const refusal = z.looseObject({ error: z.looseObject({ code: z.string() }) })

/** Sends one, by the way its number says. */
function sendPaid(url: string, token: string, number: number): Promise<Answered> {
  const way = Math.floor(number / 3) % 3
  return way === 2 ? byWebSocket(url, token, number) : byHttp(url, token, number, way === 1)
}

async function byHttp(url: string, token: string, number: number, stream: boolean): Promise<Answered> {
  try {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-request-id': idOf(number) },
      body: question(number, stream),
    })
    const text = await answer.text()
    if (answer.status !== 200) return { status: answer.status, code: refusal.parse(JSON.parse(text)).error.code }
    return stream && !text.endsWith('[DONE]\n\n') ? broken : whole
  } catch {
    // A gateway that is killed answers nobody.
    return broken
  }
}

const errorFrame = refusal.extend({ type: z.literal('error'), status: z.number() })

function byWebSocket(url: string, token: string, number: number): Promise<Answered> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}/ws`, {
    headers: { authorization: `Bearer ${token}`, 'x-request-id': idOf(number) },
  })
  return new Promise((resolve) => {
    const end = (answered: Answered) => {
      resolve(answered)
      socket.close()
    }
    socket.addEventListener('open', () => socket.send(question(number, true)))
    socket.addEventListener('message', ({ data }) => {
      if (data === '[DONE]') return end(whole)
      const refused = errorFrame.safeParse(JSON.parse(String(data)))
      if (refused.success) end({ status: refused.data.status, code: refused.data.error.code })
    })
    socket.addEventListener('close', () => end(broken))
  })
}

/** Counts the requests of a test, and keeps the status of each and why any was refused. */
export class PaidRequests {
  readonly statuses = new Map<number, number>()
  readonly refusals = new Set<string>()
  readonly addresses: () => readonly string[]
  #next: number

  constructor(addresses: () => readonly string[], first = 0) {
    this.addresses = addresses
    this.#next = first
  }

  /** All at once, to all gateways in turn, or at most so many at a time. Gives the statuses. */
  async send(token: string, count: number, atOnce = count): Promise<number[]> {
    const statuses: number[] = []
    const last = this.#next + count
    const loop = async () => {
      while (this.#next < last) {
        const number = this.#next++
        const addresses = this.addresses()
        const { status, code } = await sendPaid(addresses[number % addresses.length] ?? '', token, number)
        this.statuses.set(number, status)
        if (code !== null) this.refusals.add(code)
        statuses.push(status)
      }
    }
    await Promise.all(Array.from({ length: Math.min(count, atOnce) }, loop))
    return statuses
  }

  /** The numbers of those that were answered whole. */
  get completed(): number[] {
    return [...this.statuses].filter(([, status]) => status === 200).map(([number]) => number)
  }
}
