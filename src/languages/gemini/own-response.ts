/** The members of a response that the gateway writes itself. */
import type { JsonObject } from '../reading/json-value.ts'
import { plainId } from '../reading/request-fields.ts'

export const ownResponse = (model: string, exchangeId: string): JsonObject => ({
  modelVersion: model,
  responseId: plainId(exchangeId),
})
