/** Audience of the service account tokens of proxies: projected into their Pods, demanded by the controller. */
export const tokenAudience = 'tollgate'
