/** What a process says about itself to those who run it: alive, able to answer, counted (handbook/reference/http.md). */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { version } from '../version.ts'
import { jsonResponse } from './answer.ts'
import { conventions } from './conventions.ts'

export interface Health {
  /** `reason` says what is missing, or what is wrong although the process is ready. */
  ready(): { ok: boolean; reason?: string | undefined }
  /** Prometheus text. */
  metrics(): Promise<string>
}

const readinessSchema = z.object({ status: z.enum(['ready', 'unready']), reason: z.string().nullable() })

export const healthRoutes = ({ ready, metrics }: Health) =>
  new Elysia({ name: 'health' })
    .use(conventions)
    .get('/healthz', () => ({ status: 'ok' as const, version }), {
      access: 'public',
      response: z.object({ status: z.literal('ok'), version: z.string() }),
      detail: { tags: ['Process'], summary: 'Says whether the process is alive' },
    })
    .get(
      '/readyz',
      () => {
        const { ok, reason } = ready()
        const body = JSON.stringify({ status: ok ? 'ready' : 'unready', reason: reason ?? null })
        return jsonResponse(ok ? 200 : 503, body)
      },
      {
        access: 'public',
        response: { 200: readinessSchema, 503: readinessSchema },
        detail: { tags: ['Process'], summary: 'Says whether the process is ready, and what is missing' },
      },
    )
    .get(
      '/metrics',
      async () =>
        new Response(await metrics(), { headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' } }),
      {
        access: 'public',
        answers: ['text/plain'],
        detail: { tags: ['Process'], summary: 'Returns the metrics of the process, for Prometheus' },
      },
    )
