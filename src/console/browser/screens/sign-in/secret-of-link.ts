/** Takes the secret of a link to this page out of the fragment, which browsers do not send, and out of the history. */
export function secretOfLink(page: string): string {
  if (location.hash.length < 2 || !location.pathname.endsWith(page)) return ''
  const secret = location.hash.slice(1)
  history.replaceState(null, '', location.pathname)
  return secret
}
