/** Names of container images, by the grammar of the reference implementation (distribution/reference, reference.go). */
import { Failure } from '../../src/failure.ts'

const domainPart = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?'
const domain = `(?:${domainPart}(?:\\.${domainPart})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`
const pathPart = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'
const tag = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}'
const digest = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}'
const reference = new RegExp(`^((?:${domain}/)?${pathPart}(?:/${pathPart})*)(?::${tag})?(?:@${digest})?$`)
const longestName = 255

/** Throws `usage` if the value of `--image` is not a valid image name. */
export function requireImageName(written: string): void {
  const name = reference.exec(written)?.[1]
  if (name !== undefined && name.length <= longestName) return
  throw new Failure('usage', {
    message: '--image is no name of an image: write HOST:PORT/PATH:TAG or PATH:TAG, the path in lower case',
  })
}
