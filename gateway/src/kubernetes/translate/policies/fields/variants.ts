import type { Path } from '../../../../schema/path.ts'
import { isConditional, type MaybeConditional } from '../../../own-kinds/gateway-policy/conditional.ts'
import type { GatewayPolicySpec } from '../../../own-kinds/gateway-policy/gateway-policy.ts'
import type { BackendTraffic, RoutePolicies } from '../../plan.ts'
import type { Lookups } from '../lookups.ts'
import { type Field, type FieldKind, fieldOf } from './field.ts'

/** A policy in the Config, with the results of its references. */
export type Variant<Config> = {
  readonly config: Config
  readonly resolved?: Partial<Pick<Field, 'backends' | 'mistakes' | 'unresolved'>> | undefined
  /** Path in the object of a path in `config`. */
  rename?(rest: Path): Path
}

type Options<Written extends object, Config extends object> = {
  /** Path below `spec`. */
  readonly path: readonly [string, ...string[]]
  /** Policy in the Config. */
  readonly place: keyof RoutePolicies
  readonly traffic?: readonly BackendTraffic[]
  select(spec: GatewayPolicySpec): MaybeConditional<Written> | undefined
  /** `path` is that of the policy below `spec`. */
  translateOne(written: Written, path: Path, lookups: Lookups): Variant<Config>
  policiesOf(config: Config | { conditional: (Config & { condition?: string | undefined })[] }): RoutePolicies
}

/** A field whose policy may consist of entries with conditions. The most specific level applies. */
export function variantsField<Written extends object, Config extends object>(
  options: Options<Written, Config>,
): FieldKind {
  return {
    path: options.path.join('.'),
    traffic: options.traffic ?? ['http', 'llm', 'mcp'],
    levels: 'mostSpecific',
    translate(spec, lookups) {
      const written = options.select(spec)
      return written && translateVariants(written, options, lookups)
    },
  }
}

function translateVariants<Written extends object, Config extends object>(
  written: MaybeConditional<Written>,
  { path, place, translateOne, policiesOf }: Options<Written, Config>,
  lookups: Lookups,
): Field {
  if (!isConditional(written)) {
    const { config, resolved, rename } = translateOne(written, path, lookups)
    return { ...fieldOf(policiesOf(config), { place: [place], path, rename }), ...resolved }
  }
  const entries = written.conditional.map(({ condition, policy }, index) => ({
    condition,
    ...translateOne(policy, [...path, 'conditional', index, 'policy'], lookups),
  }))
  const conditional = entries.map(({ condition, config }) => ({
    ...(condition !== undefined && { condition }),
    ...config,
  }))
  const rename = (rest: Path): Path => {
    const [list, index, field, ...below] = rest
    if (list !== 'conditional' || field === undefined || field === 'condition') return rest
    const inPolicy = [field, ...below]
    const renamed = entries[Number(index)]?.rename?.(inPolicy) ?? inPolicy
    return ['conditional', index ?? 0, 'policy', ...renamed]
  }
  return {
    ...fieldOf(policiesOf({ conditional }), { place: [place], path, rename }),
    backends: entries.flatMap(({ resolved }) => resolved?.backends ?? []),
    mistakes: entries.flatMap(({ resolved }) => resolved?.mistakes ?? []),
    unresolved: entries.flatMap(({ resolved }) => resolved?.unresolved ?? []),
  }
}
