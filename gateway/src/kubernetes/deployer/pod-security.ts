/** User and group of the image. */
const nonRootId = 65_532

/** Security context of the Pods of gateways and controllers ("restricted" Pod Security Standard). */
export const podSecurity = {
  runAsNonRoot: true,
  runAsUser: nonRootId,
  runAsGroup: nonRootId,
  fsGroup: nonRootId,
  seccompProfile: { type: 'RuntimeDefault' },
}

/** Security context of their containers. */
export const containerSecurity = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
}
