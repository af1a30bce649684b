/** 1 where the text between the first `<answer>` and `</answer>` is right by GAIA's rules, else 0. */
export { gaiaRewardFunc } from 'aworld-train'
