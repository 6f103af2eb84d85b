import { version } from '../version.ts'
import { jsonResponse } from './answer.ts'

/** What a process says of itself to those who run it: alive, able to answer, counted (handbook/reference/http.md). */
export interface Health {
  /** `reason` says in words what is missing, or what is wrong though it can answer. */
  ready(): { ok: boolean; reason?: string | undefined }
  /** Prometheus text. */
  metrics(): Promise<string>
}

export const healthPaths = ['/healthz', '/readyz', '/metrics'] as const

export async function healthResponse(path: (typeof healthPaths)[number], health: Health): Promise<Response> {
  if (path === '/healthz') return jsonResponse(200, JSON.stringify({ status: 'ok', version }))
  if (path === '/metrics') {
    return new Response(await health.metrics(), {
      headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
    })
  }
  const { ok, reason } = health.ready()
  return jsonResponse(ok ? 200 : 503, JSON.stringify({ status: ok ? 'ready' : 'unready', reason: reason ?? null }))
}
