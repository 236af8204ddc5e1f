import type { Infer } from '../../schema/dsl.ts'
import type { ObjectMeta, ObjectOf } from './meta.ts'
import type {
  configMapContent,
  endpoint,
  endpointPort,
  endpointSliceContent,
  secretContent,
  servicePort,
  serviceSpec,
} from './schemas/core.ts'
import type { ReadonlyOf } from './schemas/fields.ts'

// Objects of Kubernetes itself, reduced to the fields read here.

export type Service = ObjectOf<
  'Service',
  ReadonlyOf<Infer<typeof serviceSpec>>,
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

export type ServicePort = ReadonlyOf<Infer<typeof servicePort>>
export type Endpoint = ReadonlyOf<Infer<typeof endpoint>>
export type EndpointPort = ReadonlyOf<Infer<typeof endpointPort>>

export type EndpointSlice = ContentOf<'EndpointSlice', Infer<typeof endpointSliceContent>>
export type Secret = ContentOf<'Secret', Infer<typeof secretContent>>
export type ConfigMap = ContentOf<'ConfigMap', Infer<typeof configMapContent>>
export type Namespace = ContentOf<'Namespace', unknown>

/** An object whose fields are beside `metadata`, without `spec`. */
type ContentOf<Kind extends string, Content> = {
  readonly apiVersion: string
  readonly kind: Kind
  readonly metadata: ObjectMeta
} & ReadonlyOf<Content>
