/** Replaces the provider's ids in files and batches by sealed ones, and notes the batch that a request made. */
import type { JsonObject } from '../../languages/reading/json-value.ts'
import { isGiven } from '../../languages/reading/json-value.ts'
import type { MadeObject } from '../../usage/batches/batch-protocol.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { sealErrorText, WrongId } from '../stored/answer-ids.ts'
import { isProviderId, writtenPlace } from '../stored/sealed-id.ts'
import { openBatchOf } from './end/open-batch.ts'
import { type BatchOrigin, type CheckedLines, moreOfBatch, moreOfInput, ownerOf, sealedName } from './file-place.ts'

/** The edits of a file: of a new one what was checked of it, of another what its id says. */
export const fileEdits =
  (exchange: Exchange, gateway: Gateway, more: readonly string[]) =>
  ({ id }: Readonly<JsonObject>): Map<string, string> => {
    if (typeof id !== 'string' || !isProviderId(id)) throw new WrongId()
    return new Map([['id', JSON.stringify(sealedName(exchange, gateway, 'file', id, more))]])
  }

/** The edits of a file that this exchange makes: `checked` are its lines. */
export const newFileEdits =
  (exchange: Exchange, gateway: Gateway, checked: CheckedLines) =>
  (answer: Readonly<JsonObject>): Map<string, string> => {
    const edits = fileEdits(exchange, gateway, moreOfInput(checked))(answer)
    noteMade(exchange, 'file', String(answer.id), moreOfInput(checked))
    return edits
  }

/** Lists of the owner have it from now on. */
function noteMade(exchange: Exchange, kind: MadeObject['kind'], id: string, more: readonly string[]): void {
  const { provider, id: model } = required(exchange.model)
  const place = [...writtenPlace({ providerId: provider.id, model, id, more })]
  required(exchange.stored).made = { kind, owner: ownerOf(exchange), place }
}

/** The edits of a batch that this exchange makes: `checked` are the lines of its input. */
export const newBatchEdits =
  (exchange: Exchange, gateway: Gateway, checked: CheckedLines) =>
  (answer: Readonly<JsonObject>): Map<string, string> => {
    const { id } = answer
    if (typeof id !== 'string' || !isProviderId(id)) throw new WrongId()
    const { provider, id: model, upstreamModel } = required(exchange.model)
    const { family, lines, bound } = checked
    required(required(exchange.stored).batch).made = {
      ...{ id, provider_id: provider.id, provider: provider.name, model, upstream_model: upstreamModel },
      ...{ family, lines, bound, spend_owner: exchange.spendOwner },
    }
    gateway.batches.made()
    noteMade(exchange, 'batch', id, moreOfBatch({ ...checked, hold: exchange.id, batch: id }))
    return editsOf(exchange, gateway, answer, { ...checked, hold: exchange.id, batch: id })
  }

/** The edits of a batch that was made before. A gateway that sees its end settles it. */
export const batchEdits =
  (exchange: Exchange, gateway: Gateway, origin: BatchOrigin) =>
  (answer: Readonly<JsonObject>): Map<string, string> => {
    gateway.batches.seen(openBatchOf(exchange, gateway, origin), answer.status)
    return editsOf(exchange, gateway, answer, origin)
  }

const outputs = ['output_file_id', 'error_file_id'] as const

function editsOf(
  exchange: Exchange,
  gateway: Gateway,
  answer: Readonly<JsonObject>,
  origin: BatchOrigin,
): Map<string, string> {
  const edits = new Map<string, string>()
  const replace = (member: string, kind: 'file' | 'batch', more: readonly string[]): void => {
    const id = answer[member]
    if (typeof id === 'string') edits.set(member, JSON.stringify(sealedName(exchange, gateway, kind, id, more)))
  }
  replace('id', 'batch', moreOfBatch(origin))
  replace('input_file_id', 'file', moreOfInput(origin))
  for (const member of outputs) replace(member, 'file', moreOfBatch(origin))
  const { errors } = answer
  if (isGiven(errors)) {
    const text = JSON.stringify(errors)
    const sealed = sealErrorText(exchange, text)
    if (sealed !== text) edits.set('errors', sealed)
  }
  return edits
}
