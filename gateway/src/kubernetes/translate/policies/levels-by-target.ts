import type { ObjectKey } from '../../objects/meta.ts'
import { createLevel, type Level } from './levels.ts'
import { type Target, type TargetKind, targetName } from './targets.ts'
import type { TranslatedPolicy } from './translate-policy.ts'

/** A policy with its targets. */
export type TargetedPolicy = { readonly policy: TranslatedPolicy; readonly targets: readonly Target[] }

/** The levels of an object: of the whole and of its sections by name. */
export type OwnerLevels = { whole: Level | undefined; readonly sections: Map<string, Level> }

/** The levels of objects by kind and key. */
export type Owners = { readonly [Kind in TargetKind]: ReadonlyMap<ObjectKey, OwnerLevels> }

/**
 * Creates a function that indexes policies, sorted by precedence. A target with the same policies keeps its
 * level.
 */
export function createLevels(): (targeted: readonly TargetedPolicy[]) => Owners {
  let previous: ReadonlyMap<string, Level> = new Map()
  return (targeted) => {
    const levels = new Map<string, Level>()
    const owners = { Gateway: newMap(), HTTPRoute: newMap(), GRPCRoute: newMap() }
    for (const [name, { target, policies }] of byTarget(targeted)) {
      const known = previous.get(name)
      const level =
        known !== undefined && isSameList(known.policies, policies) ? known : createLevel(name, policies)
      levels.set(name, level)
      const { kind, key, section } = target
      const owner: OwnerLevels = owners[kind].get(key) ?? { whole: undefined, sections: new Map() }
      owners[kind].set(key, owner)
      if (section === undefined) owner.whole = level
      else owner.sections.set(section, level)
    }
    previous = levels
    return owners
  }
}

function newMap(): Map<ObjectKey, OwnerLevels> {
  return new Map()
}

function byTarget(targeted: readonly TargetedPolicy[]) {
  const found = new Map<string, { target: Target; policies: TranslatedPolicy[] }>()
  for (const { policy, targets } of targeted) {
    for (const target of targets) {
      if (target.missing !== undefined) continue
      const name = targetName(target)
      const entry = found.get(name)
      if (entry === undefined) found.set(name, { target, policies: [policy] })
      else entry.policies.push(policy)
    }
  }
  return found
}

function isSameList<T>(one: readonly T[], other: readonly T[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index])
}

/** The level of a target. */
export function levelAt(owners: Owners, { kind, key, section }: Target): Level | undefined {
  const owner = owners[kind].get(key)
  return section === undefined ? owner?.whole : owner?.sections.get(section)
}
