/**
 * Quality of the cost of a call: from reported counts, from estimated counts, or unavailable (no price,
 * unknown model).
 */
export type CostStatus = 'exact' | 'estimated' | 'unpriced' | 'missing'
