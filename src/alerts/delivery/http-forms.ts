/**
 * Notices as HTTP calls:
 *
 *  webhook    Standard Webhooks 1.0: `webhook-id`, `webhook-timestamp` and `webhook-signature: v1,` with an HMAC-SHA-256
 *             of `id.timestamp.body`. A receiver drops an id that it has seen.
 *  slack      an incoming webhook: blocks of plain text, so that no name of a caller becomes a link or a mention.
 *  teams      a workflow that takes an Adaptive Card; RichTextBlock reads no Markdown.
 *  pagerduty  Events API v2: `trigger` and `resolve` with the firing as `dedup_key`.
 *
 * Slack and Teams have no idempotency key: after a crash between sending and noting it, a notice may arrive twice.
 */
import { createHmac } from 'node:crypto'
import { clipped, type Notice, textOf, titleOf } from './notice.ts'
import type { Channel } from './stored-channel.ts'

export interface Call {
  url: string
  headers: Record<string, string>
  body: string
}

type Form = (channel: Channel, notice: Notice, now: number) => Call

export const httpForms: Readonly<Record<'webhook' | 'slack' | 'teams' | 'pagerduty', Form>> = {
  webhook({ secrets: { url = '', signing_secret: key = '' } }, notice, now) {
    const body = JSON.stringify(payloadOf(notice))
    const at = String(Math.floor(now / 1000))
    return {
      url,
      headers: {
        'webhook-id': notice.id,
        'webhook-timestamp': at,
        'webhook-signature': `v1,${createHmac('sha256', Buffer.from(key.replace(/^whsec_/, ''), 'base64'))
          .update(`${notice.id}.${at}.${body}`)
          .digest('base64')}`,
      },
      body,
    }
  },
  slack({ secrets: { url = '' } }, notice) {
    const plain = (text: string, longest: number) => ({
      type: 'plain_text',
      text: clipped(text, longest),
      emoji: false,
    })
    const body = {
      text: clipped(escaped(`${titleOf(notice)}: ${notice.firing.about}`), 3000),
      blocks: [
        { type: 'header', text: plain(titleOf(notice), 150) },
        { type: 'section', text: plain(notice.firing.about, 3000) },
        {
          type: 'actions',
          elements: [{ type: 'button', text: plain('Open the console', 75), url: notice.link }],
        },
      ],
    }
    return { url, headers: {}, body: JSON.stringify(body) }
  },
  teams({ secrets: { url = '' } }, notice) {
    const line = (text: string, weight: 'Bolder' | 'Default') => ({
      type: 'RichTextBlock',
      inlines: [{ type: 'TextRun', text: clipped(text, 4000), weight }],
    })
    const content = {
      $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
      type: 'AdaptiveCard',
      version: '1.4',
      body: [line(titleOf(notice), 'Bolder'), line(notice.firing.about, 'Default')],
      actions: [{ type: 'Action.OpenUrl', title: 'Open the console', url: notice.link }],
    }
    const contentType = 'application/vnd.microsoft.card.adaptive'
    const body = { type: 'message', attachments: [{ contentType, contentUrl: null, content }] }
    return { url, headers: {}, body: JSON.stringify(body) }
  },
  pagerduty({ secrets: { url = pagerDutyUrl, routing_key } }, notice) {
    const { alert, firing, link, kind } = notice
    const body = {
      routing_key,
      event_action: kind === 'resolved' ? 'resolve' : 'trigger',
      dedup_key: firing.id,
      ...(kind === 'resolved'
        ? {}
        : {
            payload: {
              summary: clipped(`${titleOf(notice)}: ${firing.about}`, 1024),
              source: 'gatehouse',
              severity: firing.severity,
              timestamp: firing.firedAt,
              class: alert.condition,
              component: clipped(firing.subject, 255),
              custom_details: payloadOf(notice).data,
            },
            client: 'Gatehouse',
            client_url: link,
            links: [{ href: link, text: 'Open the console' }],
          }),
    }
    return { url, headers: {}, body: JSON.stringify(body) }
  },
}

export const pagerDutyUrl = 'https://events.pagerduty.com/v2/enqueue'

/** What Slack takes for markup (its guide to formatting text). */
const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const payloadOf = (notice: Notice) => ({
  type: `alert.${notice.kind}`,
  timestamp: notice.firing.resolvedAt ?? notice.firing.firedAt,
  data: {
    alert_id: notice.alert.id,
    alert: notice.alert.name,
    condition: notice.alert.condition,
    firing_id: notice.firing.id,
    subject: notice.firing.subject,
    severity: notice.firing.severity,
    value: notice.firing.value,
    threshold: notice.firing.threshold,
    about: notice.firing.about,
    fired_at: notice.firing.firedAt,
    resolved_at: notice.firing.resolvedAt,
    url: notice.link,
    text: textOf(notice),
  },
})
