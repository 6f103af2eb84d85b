/**
 * Headers that let pages of any origin read an answer (Fetch standard, CORS protocol): for public answers, or
 * requests authorized by their body alone. The browser never sends its credentials: no answer allows them, and `*`
 * excludes them.
 */

export function forAnyOrigin(answer: Response): Response {
  answer.headers.set('access-control-allow-origin', '*')
  answer.headers.set('access-control-expose-headers', '*')
  return answer
}

/** The answer to a browser's preflight request. */
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
