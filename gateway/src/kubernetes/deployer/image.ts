import type { GatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'

/** Replaces parts of an image reference (`registry/repository:tag@digest`) by those of the parameters. */
export function imageOf(reference: string, image: GatewayParametersSpec['image']): string {
  if (image === undefined) return reference
  const parts = partsOf(reference)
  const registry = image.registry ?? parts.registry
  const repository = image.repository ?? parts.repository
  const name = registry === undefined ? repository : `${registry}/${repository}`
  // Another repository has other digests, and its own tags are those of the same release.
  const isOther = image.registry !== undefined || image.repository !== undefined || image.tag !== undefined
  const digest = image.digest ?? (isOther ? undefined : parts.digest)
  if (digest !== undefined) return `${name}@${digest}`
  const tag = image.tag ?? parts.tag
  return tag === undefined ? name : `${name}:${tag}`
}

function partsOf(reference: string) {
  const [name = '', digest] = reference.split('@')
  const slash = name.indexOf('/')
  const first = slash < 0 ? '' : name.slice(0, slash)
  // The first part is a host if it has a dot or port, as for `docker pull`.
  const isHost = first === 'localhost' || /[.:]/.test(first)
  const rest = isHost ? name.slice(slash + 1) : name
  const [repository = '', tag] = rest.split(':')
  return { registry: isHost ? first : undefined, repository, tag, digest }
}
