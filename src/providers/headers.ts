/** Further headers that an operator sets for calls: of a provider, or of an MCP server. */
import { z } from 'zod'
import { secret } from '../api/resource.ts'

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
/** Visible text: no character may end a header line or begin another. */
const headerValue = /^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/
/** Those that belong to the connection or the body (RFC 9110 section 7.6.1). */
const ownHeaders: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
const headerLimit = 32

export const headersSchema = z
  .record(z.string(), z.string().meta(secret))
  .superRefine((given, context) => {
    const names = Object.keys(given)
    if (names.length > headerLimit) context.addIssue(`At most ${headerLimit} headers`)
    if (new Set(names.map((name) => name.toLowerCase())).size < names.length) {
      context.addIssue('A header is named twice')
    }
    for (const [name, value] of Object.entries(given)) {
      if (!headerName.test(name)) context.addIssue('A name is none that a header can have')
      else if (ownHeaders.has(name.toLowerCase())) context.addIssue(`${name.toLowerCase()} is the gateway's own`)
      else if (!headerValue.test(value)) context.addIssue('A value is empty, too long or not visible ASCII')
    }
  })
  .describe('Headers that are sent with every call; their values are kept like the API key and never shown')
