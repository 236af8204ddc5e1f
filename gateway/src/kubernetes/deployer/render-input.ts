import type { Gateway } from '../objects/gateway-api.ts'
import type { GatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'

/** Facts about the controller, the same for all Gateways. */
export type DeploySettings = {
  /** Image of the proxies, for example `ghcr.io/tollgate/tollgate:1.2.3`. */
  readonly image: string
  /** URL of the configuration stream. */
  readonly controllerUrl: string
  /** Certificates of the authority of the stream, PEM. */
  readonly caBundle: string
  /** Version of the gateway, for labels. */
  readonly version: string
}

export type RenderInput = {
  readonly gateway: Gateway
  /** Parameters of the class and the Gateway, merged, without mistakes. */
  readonly parameters: GatewayParametersSpec
  readonly settings: DeploySettings
  /** Key of sessions and of the persisted configuration: 64 hexadecimal digits. */
  readonly sessionKey: string
}
