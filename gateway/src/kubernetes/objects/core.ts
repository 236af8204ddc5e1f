import type { ObjectMeta, ObjectOf } from './meta.ts'

// Objects of Kubernetes itself, reduced to the fields read here.

export type Service = ObjectOf<
  'Service',
  {
    readonly type?: string | undefined
    readonly externalName?: string | undefined
    readonly clusterIP?: string | undefined
    readonly clusterIPs?: readonly string[] | undefined
    readonly ports?: readonly ServicePort[] | undefined
    readonly selector?: Readonly<Record<string, string>> | undefined
  },
  {
    readonly loadBalancer?:
      | {
          readonly ingress?:
            | readonly { readonly ip?: string | undefined; readonly hostname?: string | undefined }[]
            | undefined
        }
      | undefined
  }
>

export type ServicePort = {
  readonly name?: string | undefined
  readonly port: number
  readonly protocol?: string | undefined
  readonly appProtocol?: string | undefined
  readonly targetPort?: number | string | undefined
}

/** Its fields are beside `metadata`. */
export type EndpointSlice = {
  readonly apiVersion: string
  readonly kind: 'EndpointSlice'
  readonly metadata: ObjectMeta
  /** `IPv4`, `IPv6` or `FQDN`. */
  readonly addressType?: string | undefined
  readonly endpoints?: readonly Endpoint[] | undefined
  readonly ports?: readonly EndpointPort[] | undefined
}

export type Endpoint = {
  readonly addresses?: readonly string[] | undefined
  /** Undefined values count as ready, as in the API. */
  readonly conditions?:
    | {
        readonly ready?: boolean | undefined
        readonly serving?: boolean | undefined
        readonly terminating?: boolean | undefined
      }
    | undefined
}

export type EndpointPort = {
  readonly name?: string | undefined
  readonly port?: number | undefined
  readonly protocol?: string | undefined
  readonly appProtocol?: string | undefined
}

/** Values of `data` are base64. */
export type Secret = {
  readonly apiVersion: string
  readonly kind: 'Secret'
  readonly metadata: ObjectMeta
  readonly type?: string | undefined
  readonly data?: Readonly<Record<string, string>> | undefined
  /** In manifests only: plain text that takes precedence over `data`. */
  readonly stringData?: Readonly<Record<string, string>> | undefined
}

export type ConfigMap = {
  readonly apiVersion: string
  readonly kind: 'ConfigMap'
  readonly metadata: ObjectMeta
  readonly data?: Readonly<Record<string, string>> | undefined
}

export type Namespace = {
  readonly apiVersion: string
  readonly kind: 'Namespace'
  readonly metadata: ObjectMeta
}
