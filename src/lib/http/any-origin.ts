/**
 * What lets pages of any origin read an answer (Fetch standard, CORS protocol): for what is public, or judged by its body
 * alone. Credentials of the browser never go with it: no answer allows them, and `*` excludes them.
 */

export function forAnyOrigin(answer: Response): Response {
  answer.headers.set('access-control-allow-origin', '*')
  answer.headers.set('access-control-expose-headers', '*')
  return answer
}

/** The answer to a browser that asks whether its page may send such a request. */
export const preflightAnswer = (method: string): Response =>
  forAnyOrigin(
    new Response(null, {
      status: 204,
      headers: {
        'access-control-allow-methods': method,
        'access-control-allow-headers': '*',
        'access-control-max-age': '7200',
      },
    }),
  )
