import type { ProviderConfig } from '../config.ts'
import { auth0 } from './auth0.ts'
import { entra } from './entra.ts'
import { generic } from './generic.ts'
import { idpA } from './idp-a.ts'
import { idpB } from './idp-b.ts'
import { keycloak } from './keycloak.ts'
import { okta } from './okta.ts'
import type { Provider } from './provider.ts'

/** Providers by the keys of `provider`, aliases included. */
const providers: Record<keyof ProviderConfig, Provider> = {
  idpA,
  idpB,
  descope: idpA,
  authentik: idpB,
  keycloak,
  auth0,
  okta,
  entra,
}

/** Selects the provider of a configuration. */
export function providerOf(config: ProviderConfig | undefined): Provider {
  if (config === undefined) return generic
  const [found] = Object.entries(providers).filter(([key]) => Reflect.get(config, key) !== undefined)
  return found?.[1] ?? generic
}
