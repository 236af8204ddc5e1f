/**
 * Results by the objects that they derive from. A result is computed again only if one of its inputs is
 * another object or value.
 */
export type Memo = <T>(
  owner: object,
  slot: string,
  inputs: readonly unknown[],
  compute: (previous: T | undefined) => T,
) => T

/** Creates an empty memo. Results live as long as their owners. `slot` names one computation of an owner. */
export function createMemo(): Memo {
  const owners = new WeakMap<object, Map<string, { inputs: readonly unknown[]; value: unknown }>>()
  return <T>(
    owner: object,
    slot: string,
    inputs: readonly unknown[],
    compute: (previous: T | undefined) => T,
  ): T => {
    let slots = owners.get(owner)
    if (slots === undefined) {
      slots = new Map()
      owners.set(owner, slots)
    }
    const known = slots.get(slot)
    // A slot has one type: its name belongs to one computation.
    const previous = known?.value as T | undefined
    if (known !== undefined && isSame(known.inputs, inputs)) return known.value as T
    const value = compute(previous)
    slots.set(slot, { inputs, value })
    return value
  }
}

function isSame(left: readonly unknown[], right: readonly unknown[]): boolean {
  return left.length === right.length && left.every((item, index) => Object.is(item, right[index]))
}
