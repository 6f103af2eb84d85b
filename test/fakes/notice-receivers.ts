/**
 * Receivers of notices, each as strict as its documentation says:
 *
 *  webhook    the signature is checked by the library of Standard Webhooks itself;
 *  slack      docs.slack.dev, incoming webhooks and Block Kit: lengths of texts, plain_text and mrkdwn, 200 `ok`;
 *  teams      a Power Automate workflow: an Adaptive Card in an attachment of a message, at most 28 KB, 202;
 *  pagerduty  the schema of PagerDuty's Events API v2: required members, lengths, severities, 202 or 400 with errors.
 */
import { Webhook } from 'standardwebhooks'

type Refusal = string | null

export interface Receiver {
  url: string
  received: { id: string | null; body: Record<string, unknown> }[]
  /** What it answers instead; null: as its documentation says. */
  answer: (() => Response | Promise<Response>) | null
  stop(): void
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

function receiver(
  check: (body: Record<string, unknown>, request: Request, text: string) => Refusal,
  accepted: () => Response,
  refused: (why: string) => Response,
): Receiver {
  const made: Receiver = { url: '', received: [], answer: null, stop: () => void server.stop(true) }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const text = await request.text()
      if (request.method !== 'POST' || request.headers.get('content-type') !== 'application/json')
        return refused('form')
      const body: unknown = JSON.parse(text)
      if (!isObject(body)) return refused('no object')
      if (made.answer !== null) {
        made.received.push({ id: request.headers.get('webhook-id'), body })
        return await made.answer()
      }
      const refusal = check(body, request, text)
      if (refusal !== null) return refused(refusal)
      made.received.push({ id: request.headers.get('webhook-id'), body })
      return accepted()
    },
  })
  made.url = `http://127.0.0.1:${server.port}/services/T000/B000/secret`
  return made
}

export const webhookReceiver = (secret: string): Receiver =>
  receiver(
    (_body, request, text) => {
      try {
        new Webhook(secret).verify(text, Object.fromEntries(request.headers))
        return null
      } catch (error) {
        return String(error)
      }
    },
    () => new Response(null, { status: 204 }),
    (why) => new Response(why, { status: 401 }),
  )

const plainText = (value: unknown, longest: number): boolean =>
  isObject(value) &&
  value.type === 'plain_text' &&
  typeof value.text === 'string' &&
  value.text.length >= 1 &&
  value.text.length <= longest

export const slackReceiver = (): Receiver =>
  receiver(
    ({ text, blocks, ...others }) => {
      if (Object.keys(others).length > 0) return 'invalid_payload'
      if (typeof text !== 'string' || text === '' || /<(?!https:)/.test(text)) return 'no_text'
      const sound = list(blocks).every((block) => {
        if (!isObject(block)) return false
        if (block.type === 'header') return plainText(block.text, 150)
        if (block.type === 'section') return plainText(block.text, 3000)
        if (block.type !== 'actions') return false
        return list(block.elements).every(
          (element) =>
            isObject(element) &&
            element.type === 'button' &&
            plainText(element.text, 75) &&
            String(element.url).length <= 3000,
        )
      })
      return sound && list(blocks).length <= 50 ? null : 'invalid_blocks'
    },
    () => new Response('ok'),
    (why) => new Response(why, { status: 400 }),
  )

export const teamsReceiver = (): Receiver =>
  receiver(
    ({ type, attachments }, _request, text) => {
      const [card] = list(attachments)
      if (type !== 'message' || list(attachments).length !== 1 || !isObject(card)) return 'no message'
      if (card.contentType !== 'application/vnd.microsoft.card.adaptive' || !isObject(card.content)) return 'no card'
      const { type: kind, version, body, actions } = card.content
      if (kind !== 'AdaptiveCard' || !/^1\.[0-5]$/.test(String(version))) return 'no Adaptive Card'
      const runs = list(body).every(
        (block) =>
          isObject(block) &&
          block.type === 'RichTextBlock' &&
          list(block.inlines).every((run) => isObject(run) && run.type === 'TextRun' && typeof run.text === 'string'),
      )
      const opens = list(actions).every((action) => isObject(action) && action.type === 'Action.OpenUrl')
      return runs && opens && text.length <= 28 * 1024 ? null : 'the card is not valid'
    },
    () => new Response(null, { status: 202 }),
    (why) => new Response(why, { status: 400 }),
  )

export const pagerDutyReceiver = (): Receiver =>
  receiver(
    ({ routing_key, event_action, dedup_key, payload }) => {
      if (typeof routing_key !== 'string' || routing_key.length !== 32) return "Length of 'routing_key' is incorrect"
      if (!['trigger', 'acknowledge', 'resolve'].includes(String(event_action))) return "'event_action' is invalid"
      if (typeof dedup_key !== 'string' || dedup_key.length > 255) return "'dedup_key' is invalid"
      if (event_action !== 'trigger') return payload === undefined ? null : "'payload' is not of this action"
      if (!isObject(payload)) return "'payload' is missing or blank"
      const { summary, source, severity, timestamp } = payload
      if (typeof summary !== 'string' || summary === '' || summary.length > 1024) return "'payload.summary' is invalid"
      if (typeof source !== 'string' || source === '') return "'payload.source' is missing or blank"
      if (!['critical', 'error', 'warning', 'info'].includes(String(severity))) return "'payload.severity' is invalid"
      return Number.isNaN(Date.parse(String(timestamp))) ? "'payload.timestamp' is invalid" : null
    },
    () => Response.json({ status: 'success', message: 'Event processed', dedup_key: 'key' }, { status: 202 }),
    (why) =>
      Response.json({ status: 'invalid event', message: 'Event object is invalid', errors: [why] }, { status: 400 }),
  )
