import type { ApiKind } from '../../objects/kinds.ts'

// Kinds that the client itself uses, beside those that a translation reads.

export const leaseKind: ApiKind = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  isNamespaced: true,
}

export const eventKind: ApiKind = {
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  isNamespaced: true,
}

export const tokenReviewKind: ApiKind = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'tokenreviews',
  isNamespaced: false,
}
