/**
 * Checks one line of a batch file as the request that it is: bindings, policies, and what it can cost. What passes is
 * written as the provider gets it, with what policies redacted. A line runs through the stages of an inference request
 * on an exchange of its own, which is never recorded: the exchange of the upload stands for all of them.
 */
import { asFailure, Failure } from '../../../failure.ts'
import { type Family, families, modelFamilies } from '../../../languages/families.ts'
import { dialects } from '../../../languages/index.ts'
import { isObject, parseObject } from '../../../languages/reading/json-value.ts'
import type { Line } from '../../../lib/http/line-reader.ts'
import { memberText } from '../../../lib/json/json-members.ts'
import { priceInTier } from '../../../providers/prices/service-tier.ts'
import { moneyAccountsFor, spendAccountsOf } from '../../../usage/demands.ts'
import { boundedCost } from '../../../usage/pricing/bound.ts'
import { boundPaths } from '../../admission/bound-paths.ts'
import { resolveModel } from '../../admission/model-routing.ts'
import { selectChain } from '../../admission/policy-chain.ts'
import { matchSession } from '../../admission/session/match-session.ts'
import type { Gateway } from '../../context.ts'
import { beginExchange, type Exchange, type ResolvedModel, required } from '../../exchange.ts'
import { evaluateRequest } from '../../policy/evaluate-request.ts'
import { translateFields } from '../../request/gateway-fields.ts'
import { limitTools } from '../../request/limit-tools.ts'
import { membersOf, readRequest } from '../../request/read-request.ts'
import { languageOf } from '../../request/translate.ts'
import { openReferences } from '../../stored/references.ts'
import { ownBody } from '../../upstream/call.ts'
import { addLineResults, withoutWaiting } from '../line-results.ts'

/** The tier of prices in which batches are served, where the price list has it. */
export const batchTier = 'batch'

export interface CheckedLine {
  readonly exchange: Exchange
  readonly customId: string
  readonly family: Family
  readonly model: ResolvedModel
  /** The line as the provider gets it, without its line end. */
  readonly sent: string
  /** The most that it can cost, in nano-dollars; null if that is not known. */
  readonly bound: number | null
}

const familyAt: ReadonlyMap<string, Family> = new Map(modelFamilies.map((family) => [families[family].path, family]))
const lineMembers: ReadonlySet<string> = new Set(['custom_id', 'method', 'url', 'body'])
const longestCustomId = 512
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/** Throws what the same request would be refused with; the message begins with the line. */
export async function checkLine(upload: Exchange, gateway: Gateway, line: Line, number: number): Promise<CheckedLine> {
  try {
    return await check(upload, gateway, line)
  } catch (thrown) {
    const { code, message, verdictan, retryAfter, cause, param } = withoutWaiting(asFailure(thrown))
    const where = param === null ? '' : ` (${param})`
    throw new Failure(code, {
      message: `Line ${number}: ${message}${where}`,
      param: 'file',
      cause,
      ...(verdictan !== null && { verdictan }),
      ...(retryAfter !== null && { retryAfter }),
    })
  }
}

const invalid = (message: string): Failure => new Failure('invalid_parameter', { message })

async function check(upload: Exchange, gateway: Gateway, line: Line): Promise<CheckedLine> {
  if (line.isTooLong) {
    const { body_limit_bytes: limit } = gateway.settings
    throw new Failure('request_too_large', { message: `The line is longer than the limit of ${limit} bytes` })
  }
  const { customId, url, body } = readLine(line)
  const family = familyAt.get(url)
  if (family === undefined) throw invalid('url is no path of a family of this gateway')
  const exchange = beginExchange(
    {
      ...{ request: upload.request, connection: null, requestId: upload.requestId, route: upload.route, family },
      ...{ dialect: dialects[family], body: encoder.encode(body) },
    },
    gateway,
  )
  exchange.token = upload.token
  exchange.tokenHash = upload.tokenHash
  exchange.workload = upload.workload
  try {
    await admit(exchange, gateway)
  } finally {
    addLineResults(upload, exchange)
    // A file is no request that a person let pass.
    exchange.grant?.reservation.release()
  }
  if (exchange.grant !== null) throw new Failure('policy.escalated')
  const bound = boundOf(exchange, gateway)
  const sent = strictUtf8.decode(ownBody(exchange))
  return {
    ...{ exchange, customId, family, model: required(exchange.model), bound },
    sent: `{"custom_id":${JSON.stringify(customId)},"method":"POST","url":${JSON.stringify(url)},"body":${oneLine(sent)}}`,
  }
}

/** JSON has line feeds between its values only, where they mean nothing. */
const oneLine = (json: string): string => json.replace(/[\r\n]/g, ' ')

function readLine({ bytes }: Line): { customId: string; url: string; body: string } {
  const text = decoded(bytes)
  const members = membersOf(text)
  const value = parseObject(text)
  if (value === null) throw new Failure('invalid_json', { message: 'The line is not a JSON object' })
  if (members.repeated) throw new Failure('invalid_json', { message: 'The line names one of its members twice' })
  const unknown = members.names.find((name) => !lineMembers.has(name))
  if (unknown !== undefined) throw invalid('A line has custom_id, method, url and body, and nothing else')
  const { custom_id: customId, method, url, body } = value
  if (typeof customId !== 'string' || customId === '' || customId.length > longestCustomId) {
    throw invalid(`custom_id must be a string of 1 to ${longestCustomId} characters`)
  }
  if (method !== 'POST') throw invalid('method must be POST')
  if (typeof url !== 'string') throw invalid('url must be a path such as /v1/chat/completions')
  if (!isObject(body)) throw invalid('body must be an object: the request')
  if (body.stream === true) throw invalid('stream must be false: a batch has no streams')
  if (body.background === true) throw invalid('background must be false in a batch')
  return { customId, url, body: memberText(text, members, 'body') }
}

function decoded(bytes: Uint8Array): string {
  try {
    return strictUtf8.decode(bytes)
  } catch (thrown) {
    throw new Failure('invalid_json', { message: 'The line is not UTF-8', cause: thrown })
  }
}

/** The stages of an inference request, up to its policies. */
async function admit(exchange: Exchange, gateway: Gateway): Promise<void> {
  await readRequest(exchange, gateway)
  matchSession(exchange, gateway)
  openReferences(exchange, gateway)
  resolveModel(exchange, gateway)
  const model = required(exchange.model)
  const { family } = exchange.dialect
  if (model.kind.batches?.includes(family) !== true || languageOf(exchange, model) !== null) {
    throw new Failure('batches_unsupported')
  }
  exchange.paths = [model]
  selectChain(exchange, gateway)
  translateFields(exchange, gateway)
  const pending = evaluateRequest(exchange, gateway)
  if (pending !== undefined) await pending
}

/** The most that the line can cost at the price of batches. Throws only for a token whose money is limited. */
function boundOf(exchange: Exchange, gateway: Gateway): number | null {
  const { view } = gateway.worker
  const model = required(exchange.model)
  const terms = gateway.prices.terms(model, gateway.clock.now())
  const price = terms.price === null ? null : priceInTier(terms.price, batchTier)
  exchange.priced = [{ model, terms: { ...terms, price }, bound: null }]
  const accounts = spendAccountsOf(required(exchange.token), view.limits, view.gateway.spendOwner)
  const money = moneyAccountsFor(accounts, exchange.attributed)
  try {
    if (money.length > 0) limitTools(exchange, exchange.priced)
    const [path] = boundPaths(exchange, view.limits.excesses)
    return path === undefined ? null : boundedCost(path.bound, path.bound.most)
  } catch (thrown) {
    if (money.length > 0) throw thrown
    return null
  }
}
